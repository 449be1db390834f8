"""The client of a server. The package 'swirl_client' is generated: see generate.sh."""

import os
from typing import Any

import swirl_client
from swirl_client import Instance

api = swirl_client.ApiClient(
    swirl_client.Configuration(
        host=os.environ.get("SWIRL_SERVER", "http://127.0.0.1:8080"),
        access_token=os.environ.get("SWIRL_TOKEN"),
    )
)
instances = swirl_client.InstancesApi(api)
events = swirl_client.EventsApi(api)


def start(workflow: str, key: str, input: dict[str, Any]) -> str:
    """Starts an instance. The same key starts one only, however often this is tried."""
    # A new one comes as 'Started' itself, though the generated method promises a choice of two.
    answer: Any = instances.start_instance(workflow, idempotency_key=key, body=input)
    id: str = getattr(answer, "actual_instance", answer).id
    return id


def ended(id: str) -> Instance:
    """Waits for the end. The server waits for up to a minute, so it is asked again."""
    while True:
        instance = instances.get_instance(id, wait="PT60S")
        if instance.status != "running":
            return instance

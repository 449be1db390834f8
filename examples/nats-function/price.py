#!/usr/bin/env python3
"""A function over NATS with nothing but Python: it gives the price of an item.

    python3 price.py [HOST:PORT] [SUBJECT]

Any number of these may run: each call goes to one of them.
"""

import json
import socket
import sys

PRICES = {"lamp": 3990, "book": 1290}


def price(call):
    """What the workflow gets: a value, or an error that it can match."""
    item = call["arguments"].get("item")
    if item not in PRICES:
        message = f"there is no item {item!r}"
        return {"error": {"name": "UnknownItem", "message": message, "retryable": False}}
    return {"item": item, "price": PRICES[item]}


def answer(payload):
    try:
        return price(json.loads(payload))
    except Exception as error:  # A fault of this program must not leave the caller waiting.
        return {"error": {"code": "failed", "message": repr(error)}}


def serve(address, subject):
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)))
    stream = connection.makefile("rwb")

    def send(*parts):
        for part in parts:
            stream.write(part if isinstance(part, bytes) else part.encode())
        stream.flush()

    stream.readline()  # INFO
    send('CONNECT {"verbose":false,"headers":true,"lang":"python","version":"1"}\r\n')
    # Of all members of the queue `price` one takes each call.
    send(f"SUB {subject} price 1\r\nPING\r\n")
    while line := stream.readline():
        words = line.split()
        if not words:
            continue
        if words[0] == b"PING":
            send("PONG\r\n")
        elif words[0] == b"PONG":
            print(f"serving {subject} at {address}", flush=True)
        elif words[0] == b"-ERR":
            sys.exit(line.decode().strip())
        elif words[0] in (b"MSG", b"HMSG"):
            # MSG subject sid reply size, HMSG subject sid reply headers size
            size = int(words[-1])
            skip = int(words[-2]) if words[0] == b"HMSG" else 0
            payload = stream.read(size + 2)[skip:-2]
            if len(words) < (6 if words[0] == b"HMSG" else 5):
                continue  # Nobody waits for a reply.
            reply = words[3].decode()
            result = json.dumps(answer(payload)).encode()
            send(f"PUB {reply} {len(result)}\r\n", result, "\r\n")


if __name__ == "__main__":
    given = sys.argv[1:] + ["127.0.0.1:4222", "functions.price"][len(sys.argv) - 1 :]
    serve(given[0], given[1])

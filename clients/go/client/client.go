// Package client talks to a server. The package swirl is generated: see generate.sh.
package client

import (
	"context"
	"errors"
	"fmt"
	"os"

	"example.org/swirl-clients/swirl"
)

// New returns a client of the server that SWIRL_SERVER names.
func New() *swirl.APIClient {
	server := os.Getenv("SWIRL_SERVER")
	if server == "" {
		server = "http://127.0.0.1:8080"
	}
	configuration := swirl.NewConfiguration()
	configuration.Servers = swirl.ServerConfigurations{{URL: server}}
	if token := os.Getenv("SWIRL_TOKEN"); token != "" {
		configuration.AddDefaultHeader("Authorization", "Bearer "+token)
	}
	return swirl.NewAPIClient(configuration)
}

// Start starts an instance. The same key starts one only, however often this is tried.
func Start(ctx context.Context, api *swirl.APIClient, workflow, key string, input map[string]any) (string, error) {
	request := api.InstancesAPI.StartInstance(ctx, workflow).IdempotencyKey(key).Body(input)
	answer, _, err := request.Execute()
	if err != nil {
		return "", problem(err)
	}
	if answer.Started != nil {
		return answer.Started.Id, nil
	}
	return answer.Instance.Id, nil
}

// Ended waits for the end. The server waits for up to a minute, so it is asked again.
func Ended(ctx context.Context, api *swirl.APIClient, id string) (*swirl.Instance, error) {
	for {
		instance, _, err := api.InstancesAPI.GetInstance(ctx, id).Wait("PT60S").Execute()
		if err != nil {
			return nil, problem(err)
		}
		if instance.Status != "running" {
			return instance, nil
		}
	}
}

// Publish sends an event, and fails if neither the instance gets it nor the server keeps it.
func Publish(ctx context.Context, api *swirl.APIClient, event swirl.CloudEvent, id string) error {
	answer, _, err := api.EventsAPI.PublishEvents(ctx).CloudEvent(event).Execute()
	if err != nil {
		return problem(err)
	}
	for _, accepted := range answer.Accepted {
		if accepted.GetKept() {
			return nil
		}
		for _, reached := range accepted.Instances {
			if reached == id {
				return nil
			}
		}
		return fmt.Errorf("nobody waits for the event: %v", accepted.Reasons)
	}
	return errors.New("the server accepted nothing")
}

// problem is the server's problem in words, where it sent one.
func problem(err error) error {
	var answered *swirl.GenericOpenAPIError
	if errors.As(err, &answered) {
		if problem, ok := answered.Model().(swirl.Problem); ok {
			return fmt.Errorf("%s: %s", problem.Code, problem.Detail)
		}
	}
	return err
}

// Command exchange uses the CloudEvents SDK: it confirms an order over 'nats' or 'http', 'structured' or 'binary', and
// prints the event that the workflow 'confirmation' produces then. It needs a cluster, because produced events come over
// NATS. With 'dev' it sends over HTTP and receives nothing.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding/spec"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var server = variable("SWIRL_SERVER", "http://127.0.0.1:8080")

func main() {
	way, mode := argument(1, "nats"), argument(2, "structured")
	event, err := exchange(context.Background(), way, mode)
	if err != nil {
		log.Fatal(err)
	}
	shown, err := json.Marshal(map[string]any{
		"type": event.Type(), "source": event.Source(), "data": json.RawMessage(event.Data()),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(shown))
}

func exchange(ctx context.Context, way, mode string) (cloudevents.Event, error) {
	order := uuid.NewString()
	event, err := confirmation(order)
	if err != nil {
		return event, err
	}
	if way == "dev" {
		if err := start(order); err != nil {
			return event, err
		}
		return event, overHTTP(ctx, event, mode)
	}
	connection, err := nats.Connect(variable("NATS_URL", nats.DefaultURL))
	if err != nil {
		return event, err
	}
	defer connection.Close()
	// The subject ends with the event's type.
	shipped, err := connection.SubscribeSync("swirl.events.org.example.order.shipped")
	if err != nil {
		return event, err
	}
	if err := connection.Flush(); err != nil {
		return event, err
	}
	if err := start(order); err != nil {
		return event, err
	}
	if way == "http" {
		err = overHTTP(ctx, event, mode)
	} else {
		err = overNATS(ctx, connection, event, mode)
	}
	if err != nil {
		return event, err
	}
	for {
		message, err := shipped.NextMsg(time.Minute)
		if err != nil {
			return event, err
		}
		received := cloudevents.NewEvent()
		if err := json.Unmarshal(message.Data, &received); err != nil {
			return event, err
		}
		if received.Extensions()["orderid"] == order {
			return received, nil
		}
	}
}

func confirmation(order string) (cloudevents.Event, error) {
	event := cloudevents.NewEvent()
	event.SetID(uuid.NewString())
	event.SetSource("/shop")
	event.SetType("org.example.order.confirmed")
	// The attribute by which the event finds its instance.
	event.SetExtension("orderid", order)
	return event, event.SetData(cloudevents.ApplicationJSON, map[string]string{"by": "Ada"})
}

func overHTTP(ctx context.Context, event cloudevents.Event, mode string) error {
	token := cloudevents.WithHeader("Authorization", "Bearer "+os.Getenv("SWIRL_TOKEN"))
	client, err := cloudevents.NewClientHTTP(token)
	if err != nil {
		return err
	}
	ctx = cloudevents.ContextWithTarget(ctx, server+"/api/v1/events")
	if mode == "binary" {
		ctx = cloudevents.WithEncodingBinary(ctx)
	} else {
		ctx = cloudevents.WithEncodingStructured(ctx)
	}
	if result := client.Send(ctx, event); !cloudevents.IsACK(result) {
		return result
	}
	return nil
}

func overNATS(ctx context.Context, connection *nats.Conn, event cloudevents.Event, mode string) error {
	message := nats.NewMsg("swirl.events." + event.Type())
	if mode == "binary" {
		message.Data = event.Data()
		if err := intoHeaders(event, message.Header); err != nil {
			return err
		}
	} else {
		payload, err := json.Marshal(event)
		if err != nil {
			return err
		}
		message.Header.Set("content-type", cloudevents.ApplicationCloudEventsJSON)
		message.Data = payload
	}
	stream, err := jetstream.New(connection)
	if err != nil {
		return err
	}
	// JetStream has it once it acknowledges. With the same message id it drops repeats.
	_, err = stream.PublishMsg(ctx, message, jetstream.WithMsgID(event.ID()))
	return err
}

// Binary mode: the attributes are headers.
func intoHeaders(event cloudevents.Event, headers nats.Header) error {
	version := spec.WithPrefix("ce-").Version(event.SpecVersion())
	for _, attribute := range version.Attributes() {
		if value := attribute.Get(event.Context); value != nil {
			text, err := types.Format(value)
			if err != nil {
				return err
			}
			headers.Set(attribute.PrefixedName(), text)
		}
	}
	for name, value := range event.Extensions() {
		text, err := types.Format(value)
		if err != nil {
			return err
		}
		headers.Set("ce-"+name, text)
	}
	return nil
}

func start(order string) error {
	input, err := json.Marshal(map[string]string{"order": order})
	if err != nil {
		return err
	}
	url := server + "/api/v1/workflows/confirmation/instances"
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(input))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", order)
	request.Header.Set("Authorization", "Bearer "+os.Getenv("SWIRL_TOKEN"))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("the instance isn't started: %s", answer.Status)
	}
	return nil
}

func argument(number int, otherwise string) string {
	if len(os.Args) > number {
		return os.Args[number]
	}
	return otherwise
}

func variable(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

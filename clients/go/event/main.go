// Command event starts an instance of the workflow 'confirmation', sends the event that it waits for, and prints its
// output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"example.org/swirl-clients/client"
	"example.org/swirl-clients/swirl"
)

func main() {
	ctx := context.Background()
	api := client.New()
	order := fmt.Sprintf("go-%d", time.Now().UnixNano())
	id, err := client.Start(ctx, api, "confirmation", order, map[string]any{"order": order})
	if err != nil {
		log.Fatal(err)
	}
	event := swirl.NewCloudEvent("1.0", order, "/shop", "org.example.order.confirmed")
	event.Data = map[string]any{"by": "Ada"}
	// The attribute by which the event finds its instance.
	event.AdditionalProperties = map[string]any{"orderid": order}
	if err := client.Publish(ctx, api, *event, id); err != nil {
		log.Fatal(err)
	}
	instance, err := client.Ended(ctx, api, id)
	if err != nil {
		log.Fatal(err)
	}
	if instance.Status != "completed" {
		log.Fatalf("%s: %s", instance.Status, instance.Error.GetMessage())
	}
	output, err := json.Marshal(instance.Output)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(output))
}

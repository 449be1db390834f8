// Command start starts an instance of the workflow 'hello', waits for its end, and prints its output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"example.org/swirl-clients/client"
)

func main() {
	ctx := context.Background()
	api := client.New()
	key := fmt.Sprintf("go-%d", time.Now().UnixNano())
	id, err := client.Start(ctx, api, "hello", key, map[string]any{"name": "Ada"})
	if err != nil {
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

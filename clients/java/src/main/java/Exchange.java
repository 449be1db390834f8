import io.cloudevents.CloudEvent;
import io.cloudevents.core.builder.CloudEventBuilder;
import io.cloudevents.core.message.MessageWriter;
import io.cloudevents.http.HttpMessageFactory;
import io.cloudevents.jackson.JsonFormat;
import io.nats.client.Connection;
import io.nats.client.Message;
import io.nats.client.Nats;
import io.nats.client.PublishOptions;
import io.nats.client.Subscription;
import io.nats.client.impl.Headers;
import io.nats.client.impl.NatsMessage;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.UUID;

/**
 * CloudEvents with their own SDK: confirms an order over 'nats' or 'http', 'structured' or 'binary', and prints the event
 * that the workflow 'confirmation' produces then. It needs a cluster, because produced events come over NATS. With 'dev'
 * it sends over HTTP and receives nothing.
 */
public final class Exchange {
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final String SERVER = variable("SWIRL_SERVER", "http://127.0.0.1:8080");

    public static void main(String[] arguments) throws Exception {
        String way = arguments.length > 0 ? arguments[0] : "nats";
        boolean isBinary = arguments.length > 1 && arguments[1].equals("binary");
        String order = UUID.randomUUID().toString();
        CloudEvent event = confirmation(order);
        if (way.equals("dev")) {
            start(order);
            overHttp(event, isBinary);
            show(event);
            return;
        }
        try (Connection nats = Nats.connect(variable("NATS_URL", "nats://127.0.0.1:4222"))) {
            // The subject ends with the event's type.
            Subscription shipped = nats.subscribe("swirl.events.org.example.order.shipped");
            nats.flush(Duration.ofSeconds(10));
            start(order);
            if (way.equals("http")) {
                overHttp(event, isBinary);
            } else {
                overNats(nats, event, isBinary);
            }
            while (true) {
                Message message = shipped.nextMessage(Duration.ofMinutes(1));
                if (message == null) {
                    throw new IllegalStateException("the order isn't shipped");
                }
                CloudEvent received = received(message);
                if (order.equals(received.getExtension("orderid"))) {
                    show(received);
                    return;
                }
            }
        }
    }

    private static CloudEvent confirmation(String order) {
        return CloudEventBuilder.v1()
            .withId(UUID.randomUUID().toString())
            .withSource(URI.create("/shop"))
            .withType("org.example.order.confirmed")
            // The attribute by which the event finds its instance.
            .withExtension("orderid", order)
            .withData("application/json", "{\"by\": \"Ada\"}".getBytes(StandardCharsets.UTF_8))
            .build();
    }

    private static void overHttp(CloudEvent event, boolean isBinary) throws IOException, InterruptedException {
        HttpRequest.Builder request = request("/api/v1/events");
        write(event, isBinary, HttpMessageFactory.createWriter(
            request::header,
            body -> request.POST(BodyPublishers.ofByteArray(body))));
        send(request, 202);
    }

    private static void overNats(Connection nats, CloudEvent event, boolean isBinary) throws Exception {
        Headers headers = new Headers();
        NatsMessage.Builder message = NatsMessage.builder().subject("swirl.events." + event.getType()).headers(headers);
        // The headers of HTTP are understood over NATS, too.
        write(event, isBinary, HttpMessageFactory.createWriter((name, value) -> headers.put(name, value), message::data));
        // JetStream has it once it acknowledges. With the same message id it drops repeats.
        PublishOptions once = PublishOptions.builder().messageId(event.getId()).build();
        nats.jetStream().publish(message.build(), once);
    }

    private static void write(CloudEvent event, boolean isBinary, MessageWriter<?, ?> writer) {
        if (isBinary) {
            writer.writeBinary(event);
        } else {
            writer.writeStructured(event, JsonFormat.CONTENT_TYPE);
        }
    }

    private static CloudEvent received(Message message) {
        return HttpMessageFactory.createReader(
            take -> message.getHeaders().forEach((name, values) -> take.accept(name, values.get(0))),
            message.getData()).toEvent();
    }

    private static void show(CloudEvent event) {
        String data = new String(event.getData().toBytes(), StandardCharsets.UTF_8);
        System.out.printf(
            "{\"type\":\"%s\",\"source\":\"%s\",\"data\":%s}%n", event.getType(), event.getSource(), data);
    }

    private static void start(String order) throws IOException, InterruptedException {
        HttpRequest.Builder request = request("/api/v1/workflows/confirmation/instances")
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", order)
            .POST(BodyPublishers.ofString("{\"order\": \"" + order + "\"}"));
        send(request, 201);
    }

    private static HttpRequest.Builder request(String path) {
        String token = variable("SWIRL_TOKEN", "");
        return HttpRequest.newBuilder(URI.create(SERVER + path)).header("Authorization", "Bearer " + token);
    }

    private static void send(HttpRequest.Builder request, int expected) throws IOException, InterruptedException {
        HttpResponse<String> answer = HTTP.send(request.build(), BodyHandlers.ofString());
        if (answer.statusCode() != expected) {
            throw new IllegalStateException(answer.statusCode() + ": " + answer.body());
        }
    }

    private static String variable(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }
}

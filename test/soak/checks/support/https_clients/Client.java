// Java's HttpClient: one, with one connection, for each client. See ../https_clients.rb.

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;

public class Client {
    static final Executor EXECUTOR = Executors.newFixedThreadPool(8);

    record Answer(String body, long session) {}

    final SSLContext context;
    final String version;
    HttpClient client;
    long session;

    Client(TrustManagerFactory managers, String version) throws Exception {
        this.version = version;
        context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        renew();
    }

    // Another HttpClient has another connection, and the same sessions.
    void renew() {
        SSLParameters parameters = new SSLParameters();
        parameters.setProtocols(new String[] {version});
        client = HttpClient.newBuilder().sslContext(context).sslParameters(parameters).executor(EXECUTOR).version(HttpClient.Version.HTTP_1_1).build();
    }

    CompletableFuture<Answer> ask(String url) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(60)).build();
        return client.sendAsync(request, BodyHandlers.ofString()).handle((response, error) ->
            error == null ? answer(response) : new Answer(error.toString(), 0));
    }

    static Answer answer(HttpResponse<String> response) {
        boolean closes = response.headers().firstValue("connection").orElse("").equals("close");
        return closes ? new Answer("connection: close", 0) : new Answer(response.body(), response.sslSession().get().getCreationTime());
    }

    static TrustManagerFactory trusting(String path) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream file = new FileInputStream(path)) {
            store.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(store);
        return managers;
    }

    public static void main(String[] arguments) throws Exception {
        TrustManagerFactory managers = trusting(arguments[1]);
        List<Client> clients = new ArrayList<>();
        for (int index = 0; index < Integer.parseInt(arguments[2]); index++) {
            clients.add(new Client(managers, index % 2 == 0 ? "TLSv1.2" : "TLSv1.3"));
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null;) {
            if (line.equals("renew")) clients.forEach(Client::renew);
            System.out.println(report(clients, arguments[0]));
        }
        System.exit(0);
    }

    // A session that is resumed keeps the time at which it was made.
    static String report(List<Client> clients, String url) {
        List<CompletableFuture<Answer>> asked = clients.stream().map(client -> client.ask(url)).toList();
        int answered = 0;
        int resumed = 0;
        String fault = "";
        for (int index = 0; index < asked.size(); index++) {
            Answer answer = asked.get(index).join();
            if (answer.body.equals("hello")) answered++;
            else fault = "\"" + answer.body.replace('"', '\'') + "\"";
            if (answer.session == clients.get(index).session) resumed++;
            clients.get(index).session = answer.session;
        }
        return String.format("{\"answered\": %d, \"resumed\": %d, \"faults\": [%s]}", answered, resumed, fault);
    }
}

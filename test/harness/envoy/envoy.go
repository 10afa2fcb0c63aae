// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// limit is how long an Envoy may take to start, on a machine that others use too.
const limit = 60 * time.Second

// Binary is the path of the Envoy that is tested with.
func Binary(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv(variable)
	if path == "" {
		tb.Fatal(`ENVOY is not set: run this by "make test-integration", or set it to what "bin/cluster which envoy" prints`)
	}
	return path
}

// Minor is the 40 of an Envoy 1.40.0 that is tested with.
func Minor(tb testing.TB) (minor int) {
	tb.Helper()
	said, err := child.Bind(exec.CommandContext(tb.Context(), Binary(tb), "--version")).CombinedOutput()
	if err != nil {
		tb.Fatalf("asking Envoy for its version: %v: %s", err, said)
	}
	// /path/envoy  version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL
	_, rest, _ := strings.Cut(string(said), "version: ")
	if _, version, found := strings.Cut(rest, "/"); found {
		_, err = fmt.Sscanf(version, "1.%d.", &minor)
	}
	if minor == 0 || err != nil {
		tb.Fatalf("the Envoy calls its version %s (%v)", said, err)
	}
	return minor
}

// Envoy is one that runs.
type Envoy struct {
	tb    testing.TB
	admin string
	cmd   *exec.Cmd
	log   *lines
	once  sync.Once
}

// Options say what an Envoy is started with.
type Options struct {
	// Address of the discovery server, and its authority in PEM form.
	Address   string
	Authority []byte
	// Node is what it calls itself, Token what it shows.
	Node, Token string
	// Listeners that it has from the beginning; all others are discovered.
	Listeners []*listenerv3.Listener
	// Clusters that it has from the beginning, likewise.
	Clusters []*clusterv3.Cluster
	// Bootstrap is its configuration, in place of one that is made of all of the above.
	Bootstrap []byte
	// Arguments are added to its command line.
	Arguments []string
}

// Start one. It is stopped when the test ends.
func Start(tb testing.TB, options Options) *Envoy {
	tb.Helper()
	directory := tb.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			tb.Fatal(err)
		}
		return path
	}
	config := options.Bootstrap
	if config == nil {
		var err error
		if config, err = bootstrap(options, write("ca.pem", options.Authority)); err != nil {
			tb.Fatal(err)
		}
	}
	at := filepath.Join(directory, "admin")
	e := &Envoy{tb: tb, log: &lines{}}
	e.cmd = child.Bind(exec.Command(Binary(tb), append([]string{"--config-path", write("bootstrap.json", config), "--concurrency", "2",
		"--disable-hot-restart", "--admin-address-path", at, "--log-level", "warning"}, options.Arguments...)...))
	e.cmd.Stdout, e.cmd.Stderr = e.log, e.log
	if err := e.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(e.Stop)
	poll.Until(tb, limit, "the Envoy has its admin port", func() error {
		text, err := os.ReadFile(at)
		if err == nil && len(text) == 0 {
			err = fmt.Errorf("%s is empty", at)
		}
		e.admin = string(text)
		return err
	})
	return e
}

// Stop kills it.
func (e *Envoy) Stop() {
	e.once.Do(func() {
		if err := e.cmd.Process.Kill(); err != nil {
			e.tb.Error(err)
		}
		_ = e.cmd.Wait() // that it was killed
		if e.tb.Failed() {
			e.tb.Logf("the Envoy said:\n%s", e.log)
		}
	})
}

// Signal it.
func (e *Envoy) Signal(s syscall.Signal) {
	e.tb.Helper()
	if err := e.cmd.Process.Signal(s); err != nil {
		e.tb.Fatal(err)
	}
}

// Said is what it has logged.
func (e *Envoy) Said() string { return e.log.String() }

// Get asks its admin page.
func (e *Envoy) Get(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.admin+path, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	if closing := response.Body.Close(); err == nil {
		err = closing
	}
	return string(body), err
}

// Post tells its admin page something.
func (e *Envoy) Post(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+e.admin+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, response.Status)
	}
	if closing := response.Body.Close(); err == nil {
		err = closing
	}
	return err
}

// Stat is a counter or gauge; 0 when it is not there.
func (e *Envoy) Stat(ctx context.Context, name string) (int, error) {
	text, err := e.Get(ctx, "/stats?filter=^"+name+"$")
	if err != nil {
		return 0, err
	}
	value := 0
	_, number, found := strings.Cut(strings.TrimSpace(text), ": ")
	if found {
		_, err = fmt.Sscan(number, &value)
	}
	return value, err
}

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// object is JSON.
type object = map[string]any

// bootstrap of an Envoy that has nothing of its own but where to ask.
func bootstrap(options Options, authority string) ([]byte, error) {
	host, port, _ := strings.Cut(options.Address, ":")
	listeners, clusters := []any{}, []any{}
	for _, l := range options.Listeners {
		text, err := protojson.Marshal(l)
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, json.RawMessage(text))
	}
	for _, c := range options.Clusters {
		text, err := protojson.Marshal(c)
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, json.RawMessage(text))
	}
	ads := object{"ads": object{}, "resource_api_version": "V3", "initial_fetch_timeout": "0s"}
	return json.Marshal(object{
		"node":  object{"id": options.Node, "cluster": options.Node},
		"admin": object{"address": socket("127.0.0.1", "0")},
		// What a test changes while it runs, by the admin page.
		"layered_runtime": object{"layers": []any{object{"name": "admin", "admin_layer": object{}}}},
		"dynamic_resources": object{
			"ads_config": object{
				"api_type": "DELTA_GRPC", "transport_api_version": "V3",
				"grpc_services": []any{object{
					"envoy_grpc":       object{"cluster_name": "plumbline-xds"},
					"initial_metadata": []any{object{"key": "authorization", "value": "Bearer " + options.Token}},
				}},
			},
			"cds_config": ads, "lds_config": ads,
		},
		"static_resources": object{"listeners": listeners, "clusters": append(clusters, object{
			"name": "plumbline-xds", "type": "STATIC", "connect_timeout": "5s",
			"typed_extension_protocol_options": object{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": object{
				"@type":                "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
				"explicit_http_config": object{"http2_protocol_options": object{}},
			}},
			"load_assignment": object{"cluster_name": "plumbline-xds", "endpoints": []any{object{
				"lb_endpoints": []any{object{"endpoint": object{"address": socket(host, port)}}},
			}}},
			"transport_socket": object{"name": "envoy.transport_sockets.tls", "typed_config": object{
				"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
				"common_tls_context": object{
					"validation_context": object{"trusted_ca": object{"filename": authority}},
					"tls_params":         object{"tls_maximum_protocol_version": "TLSv1_3"}, // a client's default is 1.2
				},
			}},
		})},
	})
}

func socket(host, port string) object {
	return object{"socket_address": object{"address": host, "port_value": json.Number(port)}}
}

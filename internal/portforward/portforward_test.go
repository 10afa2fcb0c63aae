// SPDX-License-Identifier: Apache-2.0

package portforward_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/test/harness/kubelet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// apiServer answers for the ports of one pod, at 8083 of which a server listens. It has SPDY
// alone, as API servers before Kubernetes 1.30; a test with a real one has WebSockets.
func apiServer(t *testing.T, pod *httptest.Server) *rest.Config {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /root/api/v1/namespaces/system/pods/xds-0/portforward", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "an upgrade to SPDY is needed", http.StatusBadRequest)
	})
	mux.HandleFunc("POST /root/api/v1/namespaces/system/pods/xds-0/portforward", func(w http.ResponseWriter, r *http.Request) {
		kubelet.Forward(w, r, func(port string) (net.Conn, error) {
			if port != "8083" {
				return nil, errors.New("connection refused")
			}
			return (&net.Dialer{}).DialContext(r.Context(), "tcp", pod.Listener.Addr().String())
		})
	})
	mux.HandleFunc("/root/api/v1/namespaces/system/pods/hidden/portforward", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create"}[r.Method]
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods \"hidden\" is forbidden: you cannot %s pods/portforward"}`, verb)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL + "/root"}
}

func body(t *testing.T, client *http.Client, path string) (string, error) {
	t.Helper()
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func TestAPortOfAPodIsReached(t *testing.T) {
	const long = 1 << 20
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL.Path, strings.Repeat("x", long))
	}))
	defer pod.Close()
	client := portforward.NewClient(apiServer(t, pod), portforward.Target{Namespace: "system", Pod: "xds-0", Port: 8083})
	for _, path := range []string{"/a", "/b"} {
		if text, err := body(t, client, path); err != nil || len(text) != len(path)+long || !strings.HasPrefix(text, path) {
			t.Errorf("%s answers %d bytes, %v", path, len(text), err)
		}
	}
}

func TestWhatIsInTheWayIsSaid(t *testing.T) {
	pod := httptest.NewServer(http.NotFoundHandler())
	defer pod.Close()
	config := apiServer(t, pod)
	for name, tc := range map[string]struct {
		target portforward.Target
		want   string
		denied bool
	}{
		"nothing listens there": {portforward.Target{Namespace: "system", Pod: "xds-0", Port: 8081}, "error forwarding the port: connection refused", false},
		"the pod is not there":  {portforward.Target{Namespace: "system", Pod: "none", Port: 8083}, "forwarding port 8083 of pod none: ", false},
		"a right is missing": {
			portforward.Target{Namespace: "system", Pod: "hidden", Port: 8083},
			`forwarding port 8083 of pod hidden: it takes the permission to create pods/portforward in namespace system: pods "hidden" is forbidden: you cannot get pods/portforward`, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := body(t, portforward.NewClient(config, tc.target), "/")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("it says %v, want %s", err, tc.want)
			}
			if errors.As(err, new(*portforward.DeniedError)) != tc.denied || apierrors.IsForbidden(err) != tc.denied {
				t.Errorf("%v is taken for a missing right: %v, want %v", err, !tc.denied, tc.denied)
			}
		})
	}
}

func TestAnAPIServerThatIsAwayIsSaid(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := body(t, portforward.NewClient(&rest.Config{Host: server.URL}, portforward.Target{Namespace: "system", Pod: "xds-0", Port: 8083}), "/")
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("it says %v", err)
	}
}

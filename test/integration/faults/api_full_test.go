// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// etcdCall asks etcd's JSON gateway.
func (w *world) etcdCall(path, body string) map[string]any {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.Ctx(), http.MethodPost, w.c.server.ControlPlane.Etcd.URL.JoinPath(path).String(), strings.NewReader(body))
	w.Must(err)
	response, err := http.DefaultClient.Do(request)
	w.Must(err)
	defer func() { _ = response.Body.Close() }() // only read
	raw, err := io.ReadAll(response.Body)
	w.Must(err)
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: %s %s", path, response.Status, raw)
	}
	answer := map[string]any{}
	w.Must(json.NewDecoder(bytes.NewReader(raw)).Decode(&answer))
	return answer
}

// fill writes ConfigMaps until etcd takes no more.
func (w *world) fill() {
	w.t.Helper()
	text := strings.Repeat("x", 512<<10)
	for i := range 1000 {
		err := w.c.Admin.Create(w.Ctx(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: fmt.Sprint("ballast-", i)},
			Data:       map[string]string{"text": text},
		})
		if err != nil && strings.Contains(err.Error(), "database space exceeded") {
			return
		}
		w.Must(err)
	}
	w.t.Fatal("etcd is never full")
}

// empty makes room again as an administrator does: delete, compact, defragment,
// take the alarm back.
func (w *world) empty() {
	w.t.Helper()
	w.Must(w.c.Admin.DeleteAllOf(w.Ctx(), &corev1.ConfigMap{}, client.InNamespace(w.Name)))
	status := w.etcdCall("/v3/maintenance/status", `{}`)
	header, _ := status["header"].(map[string]any)
	w.etcdCall("/v3/kv/compaction", fmt.Sprintf(`{"revision":%q,"physical":true}`, header["revision"]))
	w.etcdCall("/v3/maintenance/defragment", `{}`)
	raised, _ := w.etcdCall("/v3/maintenance/alarm", `{"action":"GET"}`)["alarms"].([]any)
	if len(raised) != 1 {
		w.t.Fatalf("the alarms are %v, want one", raised)
	}
	alarm, _ := raised[0].(map[string]any)
	w.etcdCall("/v3/maintenance/alarm", fmt.Sprintf(`{"action":"DEACTIVATE","memberID":%q,"alarm":"NOSPACE"}`, alarm["memberID"]))
}

// TestAFullEtcdStopsWhatIsWrittenAndNothingElse has the assessor wake up with
// work to do while nothing can be written.
func TestAFullEtcdStopsWhatIsWrittenAndNothingElse(t *testing.T) {
	long(t)
	c := ownCluster(t, func(s *envtest.Environment) {
		s.ControlPlane.Etcd.Configure().Set("quota-backend-bytes", fmt.Sprint(24<<20))
	})
	w := c.newWorld(t)
	h, stop := w.record()
	p := w.assessor("")
	w.UnderGuard()
	for _, name := range []string{"web", "drifts", "quiet"} {
		w.Deploy(ci, name)
		w.untilAuthorized(name, 1)
	}
	w.Must(p.Signal(syscall.SIGSTOP))
	w.Deploy(ci, "late")
	w.SetImage(ci, "web", "registry.example/shop:2")
	w.SetImage(alice, "drifts", evilImage)
	w.fill()
	w.Must(p.Signal(syscall.SIGCONT))
	w.Eventually("the assessor is refused", func() error {
		n, err := p.Metric(w.Ctx(), "plumbline_api_requests_total", `code="500"`)
		if err == nil && n < 3 {
			err = fmt.Errorf("%v answers with 500", n)
		}
		return err
	})
	w.calm(p)
	w.alive(p)
	// It is none the worse for a restart.
	w.Must(p.Stop())
	p = w.assessor("")
	w.empty()
	w.untilAuthorized("late", 1)
	w.untilAuthorized("web", 2)
	w.UntilIs("drifts", evil)
	w.untilAuthorized("quiet", 1)
	w.alive(p)
	stop()
	h.only("web", inSync)
	h.only("late", inSync)
	h.only("quiet", inSync)
	h.only("drifts", inSync, evil)
}

// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/redisguard"
	"github.com/plumbline-dev/plumbline/test/metricspage"
)

// discovery answers what kinds there are, which a cache of one namespace asks for.
func discovery(w http.ResponseWriter, r *http.Request) {
	version := metav1.GroupVersionForDiscovery{GroupVersion: v1alpha1.GroupVersion.String(), Version: v1alpha1.GroupVersion.Version}
	answers := map[string]any{
		"/api": metav1.APIVersions{},
		"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{{
			Name: v1alpha1.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		}}},
		"/apis/" + version.GroupVersion: metav1.APIResourceList{GroupVersion: version.GroupVersion, APIResources: []metav1.APIResource{
			{Name: "remediationledgers", Kind: "RemediationLedger", Namespaced: true, Verbs: []string{"get", "list", "watch"}},
			{Name: "abreleases", Kind: "ABRelease", Namespaced: true, Verbs: []string{"get", "list", "watch"}},
			{Name: "releaseworks", Kind: "ReleaseWork", Namespaced: true, Verbs: []string{"get", "list", "watch"}},
		}},
	}
	answer, ok := answers[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

// Of a cluster only its kinds have to be known. Requests and the mirror are
// counted by the process, which makes both.
func TestTheMetricsPageIsThatOfTheExecutor(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(discovery))
	t.Cleanup(server.Close)
	registry := telemetry.NewRegistry("executor")
	config := &rest.Config{Host: server.URL}
	if err := telemetry.CountRequests(config, registry); err != nil {
		t.Fatal(err)
	}
	if _, err := redisguard.NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	_, people, err := wire(Setup{
		Config: config, Namespace: "plumbline-system", Evidence: evidence.Writer{},
		Registry: registry, Log: logr.Discard(), Clock: clock.RealClock{}, ReleaseWorks: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { people.Close(context.WithoutCancel(t.Context())) })
	metricspage.Check(t, "executor", registry)
}

// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	connector "github.com/plumbline-dev/plumbline/internal/connector/traefik"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/pages"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/relay"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/traefik"
)

const traefikToken = "a-token-of-the-edge"

// traefikWorld is a Traefik that polls by the Service of two replicas, of which the first leads and the second takes new
// connections first. The Service web has a stable version and a canary.
func traefikWorld(t *testing.T) (s *shop, seats []*seat, edge *traefik.Program) {
	t.Helper()
	s = deliveryCluster(t, "--set", "routers.enabled=true", "--set", "routers.secrets={edge-traefik}", "--set", "routers.traefik.enabled=true").shop(t, nil)
	s.selecting("web")
	stable, canary := startApplication(t, "stable"), startApplication(t, "canary")
	s.deployment("stable", "shop:1", stable)
	s.deployment("canary", "shop:2", canary)
	s.addressed("web", stable.address)
	seats, polled := s.traefikSeats()
	for _, seat := range seats {
		seat.start()
		seat.process.awaitReady(t)
	}
	bundle := filepath.Join(t.TempDir(), "ca.crt")
	s.must(os.WriteFile(bundle, []byte(s.c.authorities(t, rendered.Namespace).Data[inject.CAKey]), 0o600))
	service := relay.Start(t, polled[1], polled[0])
	guide := readGuide(t)
	edge = traefik.StartBare(t, guide.arguments(t, "https://plumbline-xds.plumbline-system.svc:15011", "https://"+service.Address,
		"/etc/plumbline/ca.crt", bundle, "$(PLUMBLINE_TOKEN)", traefikToken)...)
	s.create(&corev1.Secret{ObjectMeta: system("edge-traefik"), Data: map[string][]byte{"token": []byte(traefikToken)}})
	router := &v1alpha1.TrafficRouter{}
	guide.object(t, "TrafficRouter", router, "http://traefik-0.traefik.edge.svc:8080", "http://"+edge.API, "namespace: shop", "namespace: "+s.name,
		"metadata.name: shop", "metadata.name: "+s.name)
	s.create(router)
	return s, seats, edge
}

// traefikSeats are two replicas that serve Traefiks, and the addresses at which they do.
func (s *shop) traefikSeats() (seats []*seat, polled []string) {
	s.Helper()
	seats = s.seats("xds-0", "xds-1")
	port := freeport.For(s.T)
	for _, seat := range seats {
		host, _, err := net.SplitHostPort(seat.address)
		s.must(err)
		at := net.JoinHostPort(host, strconv.Itoa(port))
		polled = append(polled, at)
		seat.args = append(seat.args, "--rollouts", "--routers", "--router-secrets=edge-traefik", "--traefik-address="+at,
			"--server-names=127.0.0.1", "--notify-allowed-networks=127.0.0.0/8", "--notify-plain-http")
		s.Cleanup(func() { seat.end(false) })
	}
	return seats, polled
}

// guideOfTraefik is the guide, whose arguments and manifests the tests of this file use.
type guideOfTraefik string

func readGuide(t *testing.T) guideOfTraefik {
	t.Helper()
	page, err := os.ReadFile("../../../docs/guides/traefik.md")
	if err != nil {
		t.Fatal(err)
	}
	return guideOfTraefik(page)
}

// arguments are those of a Traefik, with texts replaced.
func (g guideOfTraefik) arguments(t *testing.T, replaced ...string) []string {
	t.Helper()
	_, rest, begins := strings.Cut(string(g), "   args:\n")
	block, _, ends := strings.Cut(rest, "```")
	var arguments []string
	if err := yaml.Unmarshal([]byte(strings.NewReplacer(replaced...).Replace(block)), &arguments); err != nil || !begins || !ends || len(arguments) < 5 {
		t.Fatalf("the guide has the arguments %q (%v)", arguments, err)
	}
	return arguments
}

// object reads the manifest of a kind, with texts replaced.
func (g guideOfTraefik) object(t *testing.T, kind string, into any, replaced ...string) {
	t.Helper()
	for _, m := range pages.OfPage("docs/guides/traefik.md", string(g)) {
		if !strings.Contains(m.Body, "kind: "+kind+"\n") {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(strings.NewReplacer(replaced...).Replace(m.Body)), into); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("the guide has no %s", kind)
}

// inForce reads what a Traefik has in force.
func (s *shop) inForce(ctx context.Context, api string) (connector.State, error) {
	served := connector.Served{Service: types.NamespacedName{Namespace: s.name, Name: "web"}, Port: 80}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+api+"/api/http/services/"+served.Name()+"@http", http.NoBody)
	if err != nil {
		return connector.State{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return connector.State{}, err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return connector.State{}, err
	}
	return connector.ReadService(served, body)
}

// watched notes the sequences that a Traefik has, one after the other.
type watched struct {
	mu        sync.Mutex
	sequences []uint64
}

// watchSequences looks at a Traefik until the test ends, from when it has a split.
func (s *shop) watchSequences(api string) *watched {
	w := &watched{}
	ctx, stop := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			state, err := s.inForce(ctx, api)
			if ctx.Err() == nil {
				w.noteSequence(state.Sequence, err)
			}
		}
	}()
	s.Cleanup(func() { stop(); <-done })
	return w
}

// noteSequence adds a sequence that is another one than the last. A Traefik that has no split any more has sequence 0.
func (w *watched) noteSequence(sequence uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && (len(w.sequences) == 0 || w.sequences[len(w.sequences)-1] != sequence) {
		w.sequences = append(w.sequences, sequence)
	}
}

func (w *watched) all() []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sequences)
}

// awaitSplit waits until the condition Ready says that a split is effective.
func (s *shop) awaitSplit(r *v1alpha1.ABRelease, split string) {
	s.Helper()
	s.wait(r, patience, split+" is effective", func(r *v1alpha1.ABRelease) bool {
		is, _ := holds(r, v1alpha1.ConditionReady)
		return is && r.Status.Split == split
	})
}

// A Traefik polls by the Service, so by a replica that follows as well as by the one that leads. When the leader ends,
// the next one goes on where it was.
func TestATraefikKeepsItsSplitWhileTheLeaderIsReplaced(t *testing.T) {
	t.Parallel() // it has a cluster of its own
	s, seats, edge := traefikWorld(t)
	r := &v1alpha1.ABRelease{}
	readGuide(t).object(t, "ABRelease", r, "namespace: shop", "namespace: "+s.name)
	s.create(r)
	s.awaitSplit(r, "stable 90 / canary 10")
	seen := s.watchSequences(edge.API)
	s.patchSplit(r, 50)
	s.awaitSplit(r, "stable 50 / canary 50")

	seats[0].end(false)
	s.patchSplit(r, 20)
	s.awaitSplit(r, "stable 80 / canary 20")
	poll.Until(t, patience, "the Traefik has three splits", func() error {
		if n := len(seen.all()); n != 3 {
			return fmt.Errorf("it had the sequences %d", seen.all())
		}
		return nil
	})
	if all := seen.all(); !slices.IsSorted(all) || all[0] == 0 {
		t.Errorf("the Traefik had the sequences %d, in which one goes back", all)
	}
}

func (s *shop) patchSplit(r *v1alpha1.ABRelease, percent int) {
	s.Helper()
	s.must(s.c.admin.Patch(s.Context(), r, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"spec": {"trafficSplit": {"percentages": {"stable": %d, "canary": %d}}}}`, 100-percent, percent))))
}

// A run of two stages over a Traefik passes by the counts of its metrics, and promotes the canary.
func TestARunOverATraefik(t *testing.T) {
	if os.Getenv("PLUMBLINE_LONG") == "" {
		t.Skip("two stages are measured for ten seconds each: PLUMBLINE_LONG is not set")
	}
	t.Parallel() // it has a cluster of its own
	s, _, edge := traefikWorld(t)
	r := &v1alpha1.ABRelease{ObjectMeta: s.named("autumn")}
	s.must(yaml.UnmarshalStrict([]byte(`
serviceName: web
stable: stable
routers: [{name: edge}]
variations:
- {name: stable, workload: {kind: Deployment, name: web-stable}}
- {name: canary, workload: {kind: Deployment, name: web-canary}}
trafficSplit: {type: Percentage, percentages: {stable: 100, canary: 0}}
rollout:
  analysis: {cohortCheck: 0s}
  strategy:
    healthCheckInterval: 10s
    stages:
    - {trafficPercentage: 20, duration: 10s, healthThreshold: 90}
    - {trafficPercentage: 50, duration: 10s, healthThreshold: 90}
    - {trafficPercentage: 100, duration: 0s}
`), &r.Spec))
	s.create(r)
	poll.Until(t, patience, "the Traefik has the Service", func() error { return askEdge(t.Context(), edge.Web) })
	failed := s.startClient(edge.Web)
	s.wait(r, long, "the run promotes the canary", func(r *v1alpha1.ABRelease) bool {
		return r.Status.ActiveVariation == "canary" && r.Status.Split == "canary 100 / stable 0" && r.Status.Rollout.Run.State == "Completed"
	})
	if n := failed(); n > 0 {
		t.Errorf("%d requests failed", n)
	}
}

// startClient sends requests until the test ends, and counts those that fail.
func (s *shop) startClient(front string) (failed func() int) {
	ctx, stop := context.WithCancel(s.Context())
	done := make(chan struct{})
	var mu sync.Mutex
	n := 0
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := askEdge(ctx, front); err != nil && ctx.Err() == nil {
				mu.Lock()
				n++
				mu.Unlock()
			}
		}
	}()
	s.Cleanup(func() { stop(); <-done })
	return func() int { mu.Lock(); defer mu.Unlock(); return n }
}

func askEdge(ctx context.Context, front string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+front+"/", http.NoBody)
	if err != nil {
		return err
	}
	request.Host = "web.example.com"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s (%w)", response.Status, err)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/lifecycle/writes"
)

// patience is how long the tests wait for the driver.
const patience = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fault is what an API server does wrong with its nth call.
type fault func(n int, verb string) string

const (
	fine      = ""
	refuse    = "refuse" // status 500, nothing stored
	forget    = "forget" // stored and answered without a stamp
	stale     = "stale"  // stored, with the stamp of another object
	deaf      = "deaf"   // answered as if all were well, with the old content
	otherHash = "pl1:sha256:0000000000000000000000000000000000000000000000000000000000000000"
)

// apiServer stores Deployments as far as the stream writes them.
type apiServer struct {
	fault fault

	mu             sync.Mutex
	objects        map[string]map[string]any
	calls, faults  int
	underWay, most int
	hold           chan struct{} // when not nil, calls wait for it
}

func start(t *testing.T, fault fault) (*apiServer, *rest.Config) {
	t.Helper()
	a := &apiServer{fault: fault, objects: map[string]map[string]any{}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return a, &rest.Config{Host: server.URL}
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.enter()
	defer a.leave()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	what := a.fault(a.calls, r.Method)
	if what != fine {
		a.faults++
	}
	if what == refuse {
		http.Error(w, "no", http.StatusInternalServerError)
		return
	}
	answer, err := a.store(r, body, what)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (a *apiServer) enter() {
	a.mu.Lock()
	a.underWay++
	a.most = max(a.most, a.underWay)
	hold := a.hold
	a.mu.Unlock()
	if hold != nil {
		<-hold
	}
}

func (a *apiServer) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.underWay--
}

// store carries a write out and gives the answer.
func (a *apiServer) store(r *http.Request, body []byte, what string) (any, error) {
	path, isScale := strings.CutSuffix(r.URL.Path, "/scale")
	if r.Method == http.MethodDelete {
		delete(a.objects, path)
		return map[string]any{"kind": "Status"}, nil
	}
	var change map[string]any
	if err := json.Unmarshal(body, &change); err != nil {
		return nil, err
	}
	object := change
	if r.Method == http.MethodPost {
		metadata := change["metadata"].(map[string]any)
		metadata["namespace"] = strings.Split(path, "/")[5]
		path += "/" + metadata["name"].(string)
	} else if object = a.objects[path]; object == nil {
		return nil, errors.New("not found")
	} else if what != deaf {
		merge(object, change)
	}
	a.objects[path] = object
	if isScale {
		return map[string]any{"kind": "Scale", "spec": map[string]any{"replicas": object["spec"].(map[string]any)["replicas"]}}, nil
	}
	return object, stamp(object, what)
}

// merge changes a map as a strategic merge patch with one container would.
func merge(object, change map[string]any) {
	for key, value := range change {
		next, isMap := value.(map[string]any)
		list, isList := value.([]any)
		switch {
		case isMap:
			merge(object[key].(map[string]any), next)
		case isList && key == "containers":
			merge(object[key].([]any)[0].(map[string]any), list[0].(map[string]any))
		default:
			object[key] = value
		}
	}
}

func stamp(object map[string]any, what string) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	seen, err := writes.Observe(raw)
	if err != nil {
		return err
	}
	value := map[string]string{forget: "", stale: otherHash}
	text, wrong := value[what]
	if !wrong {
		text = seen.Hash
	}
	object["metadata"].(map[string]any)["annotations"] = map[string]any{"plumbline.dev/spec-hash": text}
	return nil
}

// stored is what the server holds, in order.
func (a *apiServer) stored(t *testing.T) []writes.Stored {
	t.Helper()
	var all []writes.Stored
	for _, object := range a.objects {
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		seen, err := writes.Observe(raw)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, seen.Stored)
	}
	slices.SortFunc(all, writes.Stored.Compare)
	return all
}

// stream writes until the server has had that many calls.
func stream(t *testing.T, config *rest.Config, calls int) *writes.Report {
	t.Helper()
	driver, err := writes.Start(t.Context(), writes.Config{
		REST: config, Namespaces: []string{"a", "b"}, Name: "w", Rate: writes.MaxRate, Objects: 8,
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, driver, calls)
	return driver.Stop()
}

func await(t *testing.T, driver *writes.Driver, calls int) {
	t.Helper()
	poll.Until(t, patience, fmt.Sprintf("%d calls are answered", calls), func() error {
		if now, _ := driver.Answered(); now < calls {
			return fmt.Errorf("%d are", now)
		}
		return nil
	})
}

func TestWhatIsStoredIsWhatWasAnswered(t *testing.T) {
	server, config := start(t, func(int, string) string { return fine })
	report := stream(t, config, 400)
	if report.Failed != 0 || report.Unstamped != 0 || report.Total() != server.calls {
		t.Errorf("%s, and the server had %d calls: %v %v", report, server.calls, report.Errors, report.Marks)
	}
	if diff := cmp.Diff(server.stored(t), report.Living); diff != "" {
		t.Errorf("living objects (-stored +reported):\n%s", diff)
	}
	for _, verb := range []writes.Verb{writes.Create, writes.Image, writes.Env, writes.Scale, writes.Delete} {
		if report.Calls[verb] == 0 {
			t.Errorf("no %s among %v", verb, slices.Sorted(maps.Keys(report.Calls)))
		}
	}
	reviews := 2*(report.Calls[writes.Create]+report.Calls[writes.Image]+report.Calls[writes.Env]) + report.Calls[writes.Scale] + report.Calls[writes.Delete]
	if report.Reviews() != reviews || report.Latency.Count() != report.Total() {
		t.Errorf("%d reviews, want %d; %d latencies of %d calls", report.Reviews(), reviews, report.Latency.Count(), report.Total())
	}
}

func TestEveryFaultIsCountedAsWhatItIs(t *testing.T) {
	tests := map[string]struct {
		fault             string
		failed, unstamped bool
		says              string
	}{
		"a refusal has failed":                        {refuse, true, false, "status 500"},
		"an answer with the old content has failed":   {deaf, true, false, "does not hold what was written"},
		"an object without a stamp is unstamped":      {forget, false, true, ""},
		"an object with another's stamp is unstamped": {stale, false, true, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			since := 0
			server, config := start(t, func(_ int, verb string) string {
				// Answers to a scale and a delete have no stamp to lose.
				if since++; verb != http.MethodPatch || since < 7 {
					return fine
				}
				since = 0
				return tc.fault
			})
			report := stream(t, config, 400)
			if tc.failed != (report.Failed > 0) || tc.unstamped != (report.Unstamped > 0) {
				t.Errorf("%s", report)
			}
			if tc.failed && report.Failed != server.faults {
				t.Errorf("%d failed, the server did wrong %d times", report.Failed, server.faults)
			}
			if report.Unstamped > server.faults {
				t.Errorf("%d unstamped, the server did wrong %d times", report.Unstamped, server.faults)
			}
			if tc.says != "" && !strings.Contains(fmt.Sprint(report.Errors), tc.says) {
				t.Errorf("errors %v do not say %q", report.Errors, tc.says)
			}
		})
	}
}

func TestASlowServerMeetsNoMoreCallsThanObjectsAndLatencyCountsFromWhenTheyWereDue(t *testing.T) {
	server, config := start(t, func(int, string) string { return fine })
	server.hold = make(chan struct{})
	driver, err := writes.Start(t.Context(), writes.Config{REST: config, Namespaces: []string{"a"}, Name: "w", Rate: 1000, Objects: 4})
	if err != nil {
		t.Fatal(err)
	}
	poll.Until(t, patience, "4 calls are under way", func() error {
		server.mu.Lock()
		defer server.mu.Unlock()
		if server.underWay != 4 {
			return fmt.Errorf("%d are", server.underWay)
		}
		return nil
	})
	const held = 200 * time.Millisecond
	<-time.After(held) // the length of the outage that is measured, not a wait for something
	server.mu.Lock()
	close(server.hold)
	server.hold = nil
	server.mu.Unlock()
	await(t, driver, 100)
	report := driver.Stop()
	if server.most != 4 {
		t.Errorf("%d calls were under way at once, want 4", server.most)
	}
	// Calls that were due during the outage and sent after it waited as well.
	if late := report.Late.Quantile(.5); late < held/4 {
		t.Errorf("half of the calls were sent no later than %s, in an outage of %s", late, held)
	}
	if report.Latency.Max() < held {
		t.Errorf("the longest latency is %s, in an outage of %s", report.Latency.Max(), held)
	}
}

func TestAStreamOutOfBoundsIsRefused(t *testing.T) {
	good := writes.Config{REST: &rest.Config{Host: "http://127.0.0.1:1"}, Namespaces: []string{"a"}, Name: "w", Rate: 1, Objects: 1}
	tests := map[string]func(*writes.Config){
		"no rate":         func(c *writes.Config) { c.Rate = 0 },
		"too fast":        func(c *writes.Config) { c.Rate = writes.MaxRate + 1 },
		"no object":       func(c *writes.Config) { c.Objects = 0 },
		"too many":        func(c *writes.Config) { c.Objects = writes.MaxObjects + 1 },
		"no namespace":    func(c *writes.Config) { c.Namespaces = nil },
		"nothing to name": func(c *writes.Config) { c.Name = "" },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := good
			spoil(&cfg)
			if _, err := writes.Start(t.Context(), cfg); !errors.Is(err, writes.ErrRefused) {
				t.Errorf("got %v, want %v", err, writes.ErrRefused)
			}
		})
	}
}

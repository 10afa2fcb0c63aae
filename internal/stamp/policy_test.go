// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// patience bounds every wait.
const patience = 20 * time.Second

var (
	start       = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	deployments = kube.Resource{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Plural: "deployments"}
)

// server plays the API server: one policy, its binding, and a version that
// counts up.
type server struct {
	mu      sync.Mutex
	version int
	uid     string // of both objects, empty while they are missing
	made    time.Time
	// plurals are the resources of apps that the policy matches, and expression is
	// what else its spec says. change makes another generation of them.
	plurals    []any
	expression string
	generation int64
	changed    time.Time
	failure    error
	gets       int
	// onGet is called before a read, with its number.
	onGet  func(int)
	onList func()

	unwatched bool
	progress  string
}

func (s *server) make(uid string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.uid, s.made, s.generation = uid, at, 1
}

// change makes another generation of the policy.
func (s *server) change(at time.Time, expression string, plurals ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.generation++
	s.changed, s.expression, s.plurals = at, expression, plurals
}

func (s *server) Get(_ context.Context, key types.NamespacedName, o client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	s.gets++
	n, hook := s.gets, s.onGet
	s.mu.Unlock()
	if hook != nil {
		hook(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	gvk := o.GetObjectKind().GroupVersionKind()
	switch {
	case s.failure != nil:
		return s.failure
	case s.uid == "" || key.Name != Name:
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	o.SetUID(types.UID(s.uid))
	o.SetCreationTimestamp(metav1.NewTime(s.made))
	o.SetGeneration(1)
	if gvk.Kind == "MutatingAdmissionPolicy" {
		o.SetGeneration(s.generation)
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "helm", Time: new(metav1.NewTime(s.changed))}})
		o.(*unstructured.Unstructured).Object["spec"] = map[string]any{
			"variables": []any{map[string]any{"name": "writer", "expression": s.expression}},
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{"apps"}, "apiVersions": []any{"v1"}, "resources": s.plurals, "operations": []any{"CREATE", "UPDATE"},
			}}},
		}
	}
	return nil
}

func (s *server) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	s.mu.Lock()
	list.SetResourceVersion(strconv.Itoa(s.version))
	hook := s.onList
	s.mu.Unlock()
	if hook != nil {
		hook()
	}
	return nil
}

func (s *server) Health(schema.GroupVersionKind) kube.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unwatched {
		return kube.Health{Failure: kube.ErrNotWatched}
	}
	return kube.Health{Progress: s.progress}
}

func (s *server) reach(progress string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress = progress
}

type fixture struct {
	*Policy
	server *server
	clock  *testclock.FakeClock
	looks  []string
}

// newFixture has a policy that is long in force, at version 10.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		server: &server{version: 10, uid: "a", made: start.Add(-time.Hour), generation: 1, plurals: []any{"deployments"}, progress: "10"},
		clock:  testclock.NewFakeClock(start),
	}
	f.Policy = &Policy{
		Live: f.server, Kinds: f.server, Clock: f.clock, Metrics: metrics, Log: logr.Discard(),
		LookAt: func(gvk schema.GroupVersionKind) { f.looks = append(f.looks, gvk.Kind+" under "+f.Last().ID) },
	}
	return f
}

func (f *fixture) stamps(t *testing.T, v Version) specguard.Stamps {
	t.Helper()
	now, err := f.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f.Stamps(now, deployments.GVK, v)
}

func (f *fixture) tick(t *testing.T, d time.Duration) {
	t.Helper()
	f.clock.Step(d)
	if err := f.check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAStampCountsForWhatWasWrittenAfterTheFloor(t *testing.T) {
	in := func(s specguard.Stamps) specguard.Stamps {
		s.Policy, s.Since = "a.1/a.1", start.Add(-time.Hour).Add(enforceTime)
		return s
	}
	for name, test := range map[string]struct {
		version Version
		want    specguard.Stamps
	}{
		"written later":                                {Version{"11", "11"}, in(specguard.Stamps{Written: true, Confirmed: true})},
		"written later, and overwritten since":         {Version{"11", ""}, in(specguard.Stamps{Written: true})},
		"written before, and there at the floor":       {Version{"7", "10"}, in(specguard.Stamps{Confirmed: true})},
		"written before, and the watch is not there":   {Version{"7", "9"}, in(specguard.Stamps{})},
		"written before, and overwritten since":        {Version{"7", ""}, in(specguard.Stamps{})},
		"the version of the floor itself":              {Version{"10", ""}, in(specguard.Stamps{})},
		"a version that is no number proves nothing":   {Version{"zz", "zz"}, in(specguard.Stamps{})},
		"versions compare as numbers, not as text":     {Version{"9", "9"}, in(specguard.Stamps{})},
		"more digits are later":                        {Version{"100", "100"}, in(specguard.Stamps{Written: true, Confirmed: true})},
		"no version: the object is gone, or not known": {Version{}, in(specguard.Stamps{})},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.Listing(t.Context(), deployments)
			if diff := cmp.Diff(test.want, f.stamps(t, test.version)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheStampOfAKindThatWasNeverListedProvesNothing(t *testing.T) {
	f := newFixture(t)
	if s := f.stamps(t, Version{"11", "11"}); s != (specguard.Stamps{}) {
		t.Errorf("%+v", s)
	}
}

// The life of a policy that is deleted and made again while everything watches.
func TestAPolicyMadeAnewHasAFloorOfItsOwn(t *testing.T) {
	f := newFixture(t)
	f.Listing(t.Context(), deployments)
	f.tick(t, 0)
	f.server.make("", time.Time{})
	if s := f.stamps(t, Version{"12", "12"}); s != (specguard.Stamps{}) {
		t.Errorf("without a policy: %+v", s)
	}
	if n := testutil.ToFloat64(f.Metrics); n != 0 {
		t.Errorf("in force: %v", n)
	}
	f.server.make("b", f.clock.Now())
	if s := f.stamps(t, Version{"13", "13"}); s.Policy != "b.1/b.1" || s.Written || s.Confirmed {
		t.Errorf("just made: %+v", s)
	}
	f.tick(t, enforceTime-time.Millisecond)
	if s := f.stamps(t, Version{"14", "14"}); s.Written {
		t.Errorf("before it is in force everywhere: %+v", s)
	}
	f.tick(t, time.Millisecond)
	if s := f.stamps(t, Version{"13", "11"}); !s.Written || s.Confirmed {
		t.Errorf("in force, written at 13: %+v", s)
	}
	if diff := cmp.Diff([]string{"Deployment under a.1/a.1"}, f.looks); diff != "" {
		t.Errorf("looked before the watch is there: %s", diff)
	}
	f.server.reach("12")
	f.tick(t, interval)
	f.tick(t, interval)
	if diff := cmp.Diff([]string{"Deployment under a.1/a.1", "Deployment under b.1/b.1"}, f.looks); diff != "" {
		t.Errorf("looks (-want +got):\n%s", diff)
	}
	if got := f.Settled(deployments.GVK, "12"); got != "b.1/b.1" {
		t.Errorf("settled under %q", got)
	}
	if n := testutil.ToFloat64(f.Metrics); n != 1 {
		t.Errorf("in force: %v", n)
	}
}

func TestAPolicyThatGoesDuringTheListMakesNoFloor(t *testing.T) {
	f := newFixture(t)
	f.server.onList = func() { f.server.make("b", start) }
	f.Listing(t.Context(), deployments)
	if s := f.stamps(t, Version{"20", "20"}); s.Written || s.Confirmed {
		t.Errorf("%+v", s)
	}
}

func TestAListWaitsForAPolicyThatWasJustMade(t *testing.T) {
	f := newFixture(t)
	f.server.make("b", start)
	listed := make(chan struct{})
	go func() { f.Listing(t.Context(), deployments); close(listed) }()
	poll.Until(t, patience, "the list waits", func() error {
		select {
		case <-listed:
			t.Fatal("it did not wait")
		default:
		}
		if !f.clock.HasWaiters() {
			return errors.New("the clock has no waiter")
		}
		return nil
	})
	f.clock.Step(enforceTime)
	<-listed
	if s := f.stamps(t, Version{"12", "12"}); !s.Written {
		t.Errorf("%+v", s)
	}
}

func TestWhatCannotBeReadIsNotInForceOrIsReadAgain(t *testing.T) {
	resource := schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}
	for name, test := range map[string]struct {
		failure error
		again   bool
	}{
		"not there":             {failure: apierrors.NewNotFound(resource, Name)},
		"refused for a moment":  {failure: apierrors.NewForbidden(resource, Name, errors.New("no rule")), again: true},
		"the server is away":    {failure: errors.New("connection refused"), again: true},
		"the server is too old": {failure: apierrors.NewGenericServerResponse(404, "get", resource, Name, "404 page not found", 0, true)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.server.failure = test.failure
			now, err := f.Now(t.Context())
			if (err != nil) != test.again || now.ID != "" {
				t.Errorf("%+v, %v", now, err)
			}
			f.server.failure = nil
			if now, err := f.Now(t.Context()); err != nil || now.ID != "a.1/a.1" {
				t.Errorf("readable again: %+v, %v", now, err)
			}
		})
	}
}

// An API server that has just started knows no roles, and a policy is not away
// for that.
func TestAPolicyThatIsRefusedForAMinuteIsNotInForce(t *testing.T) {
	f := newFixture(t)
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "mutatingadmissionpolicies"}, Name, errors.New("no rule"))
	refuse := func(failure error) (failed bool) {
		t.Helper()
		f.server.failure = failure
		now, err := f.Now(t.Context())
		if err == nil && failure != nil && now.ID != "" {
			t.Errorf("refused, and %q is in force", now.ID)
		}
		return err != nil
	}
	if !refuse(refused) {
		t.Error("the first refusal counts")
	}
	f.clock.Step(refusalTime - time.Millisecond)
	if !refuse(refused) || refuse(nil) {
		t.Error("a refusal of less than a minute counts")
	}
	if !refuse(refused) {
		t.Error("the minute did not begin anew")
	}
	f.clock.Step(refusalTime)
	if refuse(refused) {
		t.Error("after a minute it is still asked for")
	}
}

// Calls that meet share a read, but none is answered by one that began before it.
func TestAReadThatBeganBeforeTheCallAnswersNobody(t *testing.T) {
	f := newFixture(t)
	reading, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.server.onGet = func(int) { once.Do(func() { close(reading); <-goOn }) }
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := f.Now(t.Context()); err != nil {
			t.Error(err)
		}
	})
	<-reading
	f.server.make("b", start)
	for range 20 {
		wg.Go(func() {
			if now, err := f.Now(t.Context()); err != nil || now.ID != "b.1/b.1" {
				t.Errorf("%+v, %v", now, err)
			}
		})
	}
	poll.Until(t, patience, "all have called", func() error {
		if calls := f.reads.calls.Load(); calls < 21 {
			return fmt.Errorf("there are %d calls", calls)
		}
		return nil
	})
	close(goOn)
	wg.Wait()
	if f.server.gets > 3*len(objects) {
		t.Errorf("%d requests for 21 calls", f.server.gets)
	}
}

func TestAKindThatIsWatchedNoMoreIsForgotten(t *testing.T) {
	f := newFixture(t)
	f.Listing(t.Context(), deployments)
	f.server.unwatched = true
	f.tick(t, interval)
	if len(f.kinds) != 0 || len(f.looks) != 0 {
		t.Errorf("%d kinds, %v", len(f.kinds), f.looks)
	}
}

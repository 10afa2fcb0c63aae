// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/controller/baseline"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
	"github.com/plumbline-dev/plumbline/test/faultproxy"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// checkedEvery sets the resync period of a guard.
func checkedEvery(period time.Duration) func(*v1alpha1.SpecGuard) {
	return func(g *v1alpha1.SpecGuard) { g.Spec.ResyncPeriod = &metav1.Duration{Duration: period} }
}

func withResyncPeriod(period time.Duration) option {
	return func(s *assessor.Setup) { s.ResyncPeriod = &period }
}

// silentWatch leads the watches of Deployments over a proxy, which can then fall
// silent without the watches' ending; all other requests go their usual way.
func (w *world) silentWatch(p *process) *faultproxy.Proxy {
	w.t.Helper()
	server, err := url.Parse(config.Host)
	w.Must(err)
	proxy, err := faultproxy.Start("tcp", server.Host)
	w.Must(err)
	w.t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			w.t.Errorf("closing the proxy: %v", err)
		}
	})
	p.faults.through(func(r *http.Request) *http.Request {
		if r.URL.Query().Get("watch") == "" || !strings.HasSuffix(r.URL.Path, "/deployments") {
			return r
		}
		r = r.Clone(r.Context())
		r.URL.Host, r.Host = proxy.Address(), ""
		return r
	})
	p.faults.breakWatches()
	w.Eventually("the watch goes over the proxy", func() error {
		if proxy.Open() == 0 {
			return fmt.Errorf("no connection is open")
		}
		return nil
	})
	return proxy
}

// untilChecked is UntilIs for what only a scheduled check finds: periods, and what
// spreads checks over time, come on top of what a wait takes otherwise.
func (w *world) untilChecked(name, want string) (b *v1alpha1.Baseline) {
	w.t.Helper()
	poll.Until(w.t, 3*patience, fmt.Sprintf("a check of %s finds %q", name, want), func() (err error) {
		if b, err = w.Baseline(name); err != nil {
			return err
		}
		return guarded.Reads(want)(b)
	})
	return b
}

func TestAScheduledCheckFindsWhatTheWatchWithheld(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	p := start(t)
	w.UnderGuard(checkedEvery(2 * time.Second))
	for _, name := range []string{"web", "db", "quiet"} {
		w.Deploy(ci, name)
		w.UntilIs(name, "InSync")
	}
	proxy := w.silentWatch(p)
	w.SetEnv(alice, "quiet", "SEEN", "1") // the watch over the proxy works
	w.Until("quiet", "it drifted", isState(v1alpha1.StateDrifted))

	proxy.Set(faultproxy.Fault{Hold: true})
	w.SetImage(alice, "web", "registry.example/shop:evil")
	w.Delete(bob, "db")
	drifted := "Drifted: Changed " + guarded.ImagePath + " by alice (Untrusted, WriterStamp)"
	w.untilChecked("web", drifted)
	missing := w.untilChecked("db", "Missing: Removed object by ? (Unknown, None)")
	recreatable := meta.FindStatusCondition(missing.Status.Conditions, baseline.ConditionRecreatable)
	if recreatable == nil || recreatable.Status != metav1.ConditionFalse || recreatable.Reason != string(resync.ReasonUnattributed) {
		t.Errorf("whether it may be created again: %+v", recreatable)
	}
	const missed = "plumbline_drift_checks_total{kind=Deployment.apps,result=missed}"
	w.shows(p, missed, map[string]float64{missed: 2})

	// What the watch delivers late was judged already, and it goes on from there.
	proxy.Set(faultproxy.Fault{})
	w.stays("web", drifted)
	w.UntilIs("db", "Missing: Removed object by ? (Unknown, None)")
	w.SetImage(ci, "web", "registry.example/shop:2")
	b := w.UntilIs("web", "InSync")
	if n := guarded.Authorized(b); n != 2 {
		t.Errorf("authorized is number %d, want 2", n)
	}
}

// requests counts what an assessor asks for.
type requests struct {
	mu   sync.Mutex
	made []string
}

func (r *requests) note(request *http.Request) *http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = append(r.made, request.Method+" "+request.URL.Path)
	return request
}

// about are the requests whose path contains a text.
func (r *requests) about(text string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, request := range r.made {
		if strings.Contains(request, text) {
			found = append(found, request)
		}
	}
	return found
}

// ask asks for a check of an object.
func (w *world) ask(name, value string) {
	w.t.Helper()
	b, err := w.Baseline(name)
	w.Must(err)
	w.Must(w.As(alice).Patch(w.Ctx(), b, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationCheckRequested, value))))
}

func answered(value string) func(*v1alpha1.Baseline) error {
	return func(b *v1alpha1.Baseline) error {
		if b.Status.CheckRequested != value {
			return fmt.Errorf("answered is %q", b.Status.CheckRequested)
		}
		return nil
	}
}

// A check costs one read of the object and one write of its Baseline's status.
func TestACheckIsMadeWhenSomebodyAsksForIt(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	before := w.UntilIs("web", "InSync")
	if before.Status.NextCheckTime != nil {
		t.Errorf("the next check is at %s, although nobody asks for any", before.Status.NextCheckTime)
	}
	w.SecondOver(before.Status.LastCheckTime.Time)
	var log requests
	p.faults.through(log.note)
	w.ask("web", "once")
	after := w.Until("web", "the check was made", answered("once"))
	if !after.Status.LastCheckTime.After(before.Status.LastCheckTime.Time) || after.Status.NextCheckTime != nil {
		t.Errorf("checked at %s, next at %s; before at %s", after.Status.LastCheckTime, after.Status.NextCheckTime, before.Status.LastCheckTime)
	}
	w.ask("web", "once") // the same again asks for nothing
	w.ask("web", "twice")
	w.Until("web", "it was made again", answered("twice"))
	reads, writes := log.about("/deployments/web"), log.about("/baselines/"+after.Name+"/status")
	if len(reads) != 2 || len(writes) != 2 {
		t.Errorf("two checks made the reads %v and the writes %v", reads, writes)
	}
}

// Who says 0s means it: the default of the installation does not count then.
func TestAnExplicit0sIsNever(t *testing.T) {
	rotation.Share(t, 3)
	w, other := newWorld(t), newWorld(t)
	start(t, withResyncPeriod(time.Second))
	w.UnderGuard(checkedEvery(0))
	other.UnderGuard()
	w.Deploy(ci, "web")
	other.Deploy(ci, "web")
	never := w.UntilIs("web", "InSync")
	often := other.UntilIs("web", "InSync")
	for range 2 { // checks of the one are made while there are none of the other
		last := often.Status.LastCheckTime
		often = other.Until("web", "it is checked again", func(b *v1alpha1.Baseline) error {
			if b.Status.NextCheckTime == nil || !b.Status.LastCheckTime.After(last.Time) {
				return fmt.Errorf("checked at %s, next at %v", b.Status.LastCheckTime, b.Status.NextCheckTime)
			}
			return nil
		})
	}
	now, err := w.Baseline("web")
	w.Must(err)
	if now.Status.NextCheckTime != nil || now.ResourceVersion != never.ResourceVersion {
		t.Errorf("it is checked at %s, and its baseline went from version %s to %s", now.Status.NextCheckTime, never.ResourceVersion, now.ResourceVersion)
	}
}

// An object that asks for checks without saying how often has the interval of the
// installation. The interval switches on the checks of no other object.
func TestAnObjectThatAsksForChecksHasTheDriftInterval(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	start(t, func(s *assessor.Setup) { s.DriftInterval = time.Second })
	w.UnderGuard()
	asking := w.Deploy(ci, "web")
	w.Deploy(ci, "api")
	silent := w.UntilIs("api", "InSync")
	w.UntilIs("web", "InSync")
	w.Must(admin.Patch(w.Ctx(), asking, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, resync.AnnotationDriftDetection))))
	last := metav1.Time{}
	for range 2 {
		b := w.Until("web", "it is checked", func(b *v1alpha1.Baseline) error {
			if b.Status.NextCheckTime == nil || b.Status.LastCheckTime == nil || !b.Status.LastCheckTime.After(last.Time) {
				return fmt.Errorf("checked at %s, next at %v", b.Status.LastCheckTime, b.Status.NextCheckTime)
			}
			return nil
		})
		last = *b.Status.LastCheckTime
	}
	now, err := w.Baseline("api")
	w.Must(err)
	if now.Status.NextCheckTime != nil || now.ResourceVersion != silent.ResourceVersion {
		t.Errorf("the other is checked at %s, and its baseline went from version %s to %s", now.Status.NextCheckTime, silent.ResourceVersion, now.ResourceVersion)
	}
}

// setChecked backdates the checks that a Baseline tells of.
func (w *world) setChecked(name string, last, next time.Duration) *v1alpha1.Baseline {
	w.t.Helper()
	b, err := w.Baseline(name)
	w.Must(err)
	stored := func(after time.Duration) *metav1.Time {
		return &metav1.Time{Time: time.Now().Add(after).Truncate(time.Second)}
	}
	b.Status.LastCheckTime, b.Status.NextCheckTime = stored(last), stored(next)
	assessor, err := apiserver.As(config, assessorUser)
	w.Must(err)
	w.Must(assessor.Status().Update(w.Ctx(), b))
	return b
}

func TestARestartNeitherForgetsNorPostponesAnyCheck(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	p := start(t)
	w.UnderGuard(checkedEvery(time.Hour))
	for _, name := range []string{"overdue", "waiting"} {
		w.Deploy(ci, name)
		w.UntilIs(name, "InSync")
	}
	p.Halt(t)
	w.setChecked("overdue", -80*time.Minute, -15*time.Minute)
	waiting := w.setChecked("waiting", -30*time.Minute, 31*time.Minute)
	began := time.Now().Truncate(time.Second)
	start(t)
	w.Until("overdue", "it is checked at once", func(b *v1alpha1.Baseline) error {
		if b.Status.LastCheckTime.Time.Before(began) || b.Status.NextCheckTime.Time.Before(began.Add(time.Hour)) {
			return fmt.Errorf("checked at %s, next at %s", b.Status.LastCheckTime, b.Status.NextCheckTime)
		}
		return nil
	})
	w.stays("waiting", "InSync")
	now, err := w.Baseline("waiting")
	w.Must(err)
	if !now.Status.LastCheckTime.Equal(waiting.Status.LastCheckTime) || !now.Status.NextCheckTime.Equal(waiting.Status.NextCheckTime) {
		t.Errorf("the check of another moved from %s to %s", waiting.Status.NextCheckTime, now.Status.NextCheckTime)
	}
}

// gate holds up the live reads of a namespace's Deployments, and counts those that wait.
type gate struct {
	namespace string
	open      chan struct{}

	mu      sync.Mutex
	waiting []string
}

func (g *gate) hold(r *http.Request) *http.Request {
	if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/"+g.namespace+"/deployments/") {
		return r
	}
	g.mu.Lock()
	g.waiting = append(g.waiting, r.URL.Path)
	g.mu.Unlock()
	select {
	case <-g.open:
	case <-r.Context().Done():
	}
	return r
}

func (g *gate) held() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.waiting)
}

// Five objects are due at once. Two fifths of them are checked at the same time, because
// the option says 40 %; three fifths once GuardDefaults say so. GuardDefaults that say no
// threshold leave the option in force.
func TestTheThresholdBoundsWhatIsCheckedAtOnce(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	p := start(t, func(s *assessor.Setup) { s.DriftThreshold = 40 })
	g := w.UnderGuard()
	for i := range 5 {
		name := fmt.Sprintf("web-%d", i)
		w.Deploy(ci, name)
		w.UntilIs(name, "InSync")
	}
	hold := &gate{namespace: w.namespace, open: make(chan struct{})}
	p.faults.through(hold.hold)
	w.Must(admin.Patch(w.Ctx(), g, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resyncPeriod":"1s"}}`))))
	due := func(running, waiting float64) {
		t.Helper()
		const atWork, held = "plumbline_drift_checks_running{}", "plumbline_drift_checks_due{obstacle=Threshold}"
		w.shows(p, atWork, map[string]float64{atWork: running})
		w.shows(p, held, map[string]float64{held: waiting})
	}
	due(2, 3)
	defaults := &v1alpha1.GuardDefaults{
		ObjectMeta: metav1.ObjectMeta{Name: "t-threshold"},
		Spec:       v1alpha1.GuardDefaultsSpec{Defaults: v1alpha1.CheckDefaults{ManagementPolicy: v1alpha1.Managed}},
	}
	w.Must(admin.Create(w.Ctx(), defaults))
	t.Cleanup(func() { w.Must(admin.Delete(context.WithoutCancel(t.Context()), defaults)) })
	w.Eventually("the defaults are in force", func() error {
		w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(defaults), defaults))
		if !meta.IsStatusConditionTrue(defaults.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("the conditions are %v", defaults.Status.Conditions)
		}
		return nil
	})
	due(2, 3)
	w.Must(admin.Patch(w.Ctx(), defaults, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"driftThreshold":"0.6"}}`))))
	due(3, 2)
	if n := len(hold.held()); n != 3 {
		t.Errorf("%d reads were sent, want 3: %v", n, hold.held())
	}
	close(hold.open)
	for i := range 5 {
		w.Until(fmt.Sprintf("web-%d", i), "it is checked", func(b *v1alpha1.Baseline) error {
			if b.Status.NextCheckTime == nil {
				return fmt.Errorf("it has no next check")
			}
			return nil
		})
	}
}

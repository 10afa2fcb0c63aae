// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// setting are the changes of a body that set an image, and more.
func setting(t testing.TB, body []byte, lines ...string) []diff.Change {
	t.Helper()
	lines = append([]string{imagePath + ` = "registry.example/shop/web:2"`}, lines...)
	return parseChanges(t, body, canon.ParseGVK("apps/v1", "Deployment"), strings.Join(lines, "\n"))
}

// updates is a run that sets an image in the authorized body, in the name of ci.
func updates(t testing.TB) *Released {
	t.Helper()
	return &Released{
		Requester: Identity{User: testUsers["ci"]},
		Release:   v1alpha1.AuthorizedRelease{Name: "web", Run: 7, WorkName: "web-7-4"},
		Bodies: func(authorized []byte) [][]byte {
			if authorized == nil {
				return nil
			}
			gvk := canon.ParseGVK("apps/v1", "Deployment")
			body, _, err := diff.Apply(authorized, gvk, setting(t, authorized))
			if err != nil {
				t.Fatal(err)
			}
			return [][]byte{body}
		},
	}
}

// creates is a run that makes an object with a body.
func creates(body string) *Released {
	return &Released{
		Requester: Identity{User: testUsers["ci"]}, Creates: true,
		Release: v1alpha1.AuthorizedRelease{Name: "web", Run: 7, WorkName: "web-7-1"},
		Bodies:  func([]byte) [][]byte { return [][]byte{[]byte(body)} },
	}
}

// newReleaseWorld has a Deployment that ci made under a guard.
func newReleaseWorld(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	w.guard("workloads", testGuardSpec(), w.now.Add(-time.Hour))
	w.create(write{user: testUsers["ci"]}, testDeployment)
	w.observe(false, false)
	if w.state.Drift != v1alpha1.StateInSync {
		t.Fatalf("the Deployment is %s", w.state.Drift)
	}
	w.effects = nil
	return w
}

func byExecutor(changes []diff.Change) write {
	return write{user: testUsers["executor"], changes: changes}
}

// TestARunOfATrustedUserAuthorizesWhatItLeaves: in each case the run leaves the image, and more
// differs as the case says.
func TestARunOfATrustedUserAuthorizesWhatItLeaves(t *testing.T) {
	tests := map[string]struct {
		before   func(*world)
		observe  func(*world)
		findings int
		masks    int
	}{
		"a write that was watched": {},
		"a write while no process watched": {observe: func(w *world) {
			w.restart()
			w.observe(true, false)
		}},
		"beside replicas of an autoscaler": {before: func(w *world) {
			w.update(write{user: testUsers["hpa"], changes: parseChanges(w.t, w.live.Body, w.gvk, "/spec/replicas = 9")})
			w.observe(false, false)
		}, masks: 1},
		"beside a drift of before, which stays": {before: func(w *world) {
			w.update(write{user: "mallory", changes: parseChanges(w.t, w.live.Body, w.gvk, "/spec/paused = true")})
			w.observe(false, false)
		}, findings: 1},
		"over a drift of the image": {before: func(w *world) {
			w.update(write{user: "mallory", changes: parseChanges(w.t, w.live.Body, w.gvk, imagePath+` = "registry.example/evil:1"`)})
			w.observe(false, false)
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newReleaseWorld(t)
			if tc.before != nil {
				tc.before(w)
			}
			w.released, w.effects = updates(t), nil
			w.update(byExecutor(setting(t, w.live.Body)))
			if tc.observe == nil {
				w.observe(false, false)
			} else {
				tc.observe(w)
			}
			st := w.state
			if st.FindingsTotal != tc.findings || len(st.Masks) != tc.masks {
				t.Errorf("%d findings and %d masks:\n%s", st.FindingsTotal, len(st.Masks), w.report())
			}
			a := st.Authorized
			if a.Number != 2 || a.By != testUsers["ci"] || a.Origin != v1alpha1.OriginCreated || a.Release == nil || a.Release.Run != 7 {
				t.Errorf("authorized is %+v", a)
			}
			if !strings.Contains(string(st.Body), "shop/web:2") || strings.Contains(string(st.Body), `"paused":true`) {
				t.Errorf("the authorized body is %s", st.Body)
			}
			if report := w.report(); !strings.Contains(report, "by release web, run 7, in the name of "+testUsers["ci"]) {
				t.Errorf("no event tells of the release:\n%s", report)
			}
		})
	}
}

// TestNothingElseIsAuthorizedByARelease plays the attacker.
func TestNothingElseIsAuthorizedByARelease(t *testing.T) {
	tests := map[string]func(*world){
		"no work of the run exists": func(w *world) {
			w.released = nil
			w.update(byExecutor(setting(w.t, w.live.Body)))
		},
		"the guard does not trust the author": func(w *world) {
			w.released.Requester.User = "alice"
			w.update(byExecutor(setting(w.t, w.live.Body)))
		},
		"one of two guards does not trust the author": func(w *world) {
			spec := testGuardSpec()
			spec.TrustedWriters = v1alpha1.Writers{Users: []string{"platform"}}
			w.guard("platform", spec, w.now.Add(-time.Hour))
			w.update(byExecutor(setting(w.t, w.live.Body)))
		},
		"a suspended guard does not trust the author": func(w *world) {
			spec := testGuardSpec()
			spec.TrustedWriters = v1alpha1.Writers{Users: []string{"platform"}}
			spec.Suspend = &v1alpha1.Suspension{EndTime: metav1.NewTime(w.now.Add(time.Hour)), Reason: "works"}
			w.guard("platform", spec, w.now.Add(-time.Hour))
			w.update(byExecutor(setting(w.t, w.live.Body)))
		},
		"a tenant makes the same change": func(w *world) {
			w.update(write{user: "mallory", changes: setting(w.t, w.live.Body)})
		},
		"one field differs": func(w *world) {
			w.update(byExecutor(setting(w.t, w.live.Body, "/spec/paused = true")))
		},
		"another image": func(w *world) {
			w.update(byExecutor(parseChanges(w.t, w.live.Body, w.gvk, imagePath+` = "registry.example/evil:1"`)))
		},
		"the stamp is forged while no policy stamps": func(w *world) {
			w.policy.remove()
			w.update(write{user: "mallory", forged: testUsers["executor"], changes: setting(w.t, w.live.Body)})
		},
		"a body that cannot be read": func(w *world) {
			w.released.Bodies = func([]byte) [][]byte { return [][]byte{[]byte("{")} }
			w.update(byExecutor(setting(w.t, w.live.Body)))
		},
	}
	for name, attack := range tests {
		t.Run(name, func(t *testing.T) {
			w := newReleaseWorld(t)
			w.released = updates(t)
			attack(w)
			w.observe(false, false)
			st := w.state
			if st.Authorized.Number != 1 || st.FindingsTotal == 0 || strings.Contains(string(st.Body), "web:2") || st.Authorized.Release != nil {
				t.Errorf("authorized is %+v of %s:\n%s", st.Authorized, st.Body, w.report())
			}
		})
	}
}

func TestACloneOfARunIsAuthorizedAsCreated(t *testing.T) {
	tests := map[string]struct {
		body, user string
		change     func(*Released)
		authorized bool
	}{
		"that the executor has made as the release says": {testDeployment, testUsers["executor"], func(*Released) {}, true},
		"that a tenant has made":                         {testDeployment, "mallory", func(*Released) {}, false},
		"with other replicas":                            {strings.Replace(testDeployment, `"replicas":3`, `"replicas":4`, 1), testUsers["executor"], func(*Released) {}, false},
		"of a user whom the guard does not trust":        {testDeployment, testUsers["executor"], func(r *Released) { r.Requester.User = "alice" }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.guard("workloads", testGuardSpec(), w.now.Add(-time.Hour))
			w.released = creates(testDeployment)
			tc.change(w.released)
			w.create(write{user: tc.user}, tc.body)
			w.observe(false, false)
			if a := w.state.Authorized; (a != nil) != tc.authorized {
				t.Fatalf("authorized is %+v:\n%s", a, w.report())
			}
			if !tc.authorized {
				if f := w.state.Findings; len(f) != 1 || f[0].Class != v1alpha1.ClassObjectUnexpected {
					t.Errorf("the findings are %+v", f)
				}
				return
			}
			a := w.state.Authorized
			if a.By != testUsers["ci"] || a.Origin != v1alpha1.OriginCreated || a.Release == nil || a.Release.WorkName != "web-7-1" || w.state.Drift != v1alpha1.StateInSync {
				t.Errorf("authorized is %+v, and the state %s", a, w.state.Drift)
			}
		})
	}
}

// The body of a standby is authorized already, so no guard has to trust the user who asked for it.
func TestAStandbyOfAPlanIsAuthorizedAsCreated(t *testing.T) {
	tests := map[string]struct {
		body, user string
		authorized bool
	}{
		"that the executor has made as the plan says": {testDeployment, testUsers["executor"], true},
		"that a tenant has made":                      {testDeployment, "mallory", false},
		"with other replicas":                         {strings.Replace(testDeployment, `"replicas":3`, `"replicas":4`, 1), testUsers["executor"], false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.guard("workloads", testGuardSpec(), w.now.Add(-time.Hour))
			w.released = &Released{
				Requester: Identity{User: "alice"}, Standby: "production-1", Creates: true,
				Bodies: func([]byte) [][]byte { return [][]byte{[]byte(testDeployment)} },
			}
			w.create(write{user: tc.user}, tc.body)
			w.observe(false, false)
			a := w.state.Authorized
			if (a != nil) != tc.authorized {
				t.Fatalf("authorized is %+v:\n%s", a, w.report())
			}
			if a == nil {
				return
			}
			if a.By != "alice" || a.Origin != v1alpha1.OriginCreated || a.Release != nil || w.state.Drift != v1alpha1.StateInSync {
				t.Errorf("authorized is %+v, and the state %s", a, w.state.Drift)
			}
			if report := w.report(); !strings.Contains(report, "made by plan production-1 as a standby, in the name of alice") {
				t.Errorf("no event tells of the plan:\n%s", report)
			}
		})
	}
}

// What a run puts back was authorized before the run. No guard has to trust the requester for that, and the state is
// none of the run's.
func TestARunReturnsToTheStateOfBefore(t *testing.T) {
	w := newReleaseWorld(t)
	w.released = updates(t)
	w.update(byExecutor(setting(t, w.live.Body)))
	w.observe(false, false)
	if a := w.state.Authorized; w.state.Drift != v1alpha1.StateInSync || a.Number != 2 || a.Release == nil {
		t.Fatalf("authorized is %+v:\n%s", a, w.report())
	}
	back := updates(t)
	back.Requester, back.Returns, back.Bodies = Identity{User: "gone"}, true, func([]byte) [][]byte { return [][]byte{[]byte(testDeployment)} }
	w.released = back
	w.update(byExecutor(parseChanges(t, w.live.Body, w.gvk, imagePath+` = "registry.example/shop/web:1"`)))
	w.observe(false, false)
	if a := w.state.Authorized; w.state.Drift != v1alpha1.StateInSync || a.Number != 3 || a.Release != nil || a.By != "gone" {
		t.Errorf("authorized is %+v:\n%s", a, w.report())
	}
	w.update(byExecutor(setting(t, w.live.Body)))
	w.observe(false, false)
	if a := w.state.Authorized; w.state.Drift != v1alpha1.StateDrifted || a.Number != 3 {
		t.Errorf("what the executor writes beside that is %s, authorized is %+v", w.state.Drift, a)
	}
}

// An unexpected clone is authorized once the guard trusts the author, and once the state that it
// was made from is authorized.
func TestAnUnexpectedCloneIsAuthorizedLater(t *testing.T) {
	w := newWorld(t)
	w.guard("workloads", testGuardSpec(), w.now.Add(-time.Hour))
	w.released = creates(testDeployment)
	made := w.released.Bodies
	w.released.Bodies, w.released.Pending = func([]byte) [][]byte { return nil }, true
	w.create(write{user: testUsers["executor"]}, testDeployment)
	w.observe(false, false)
	if w.state.Drift != "" {
		t.Fatalf("it is judged at once:\n%s", w.report())
	}
	w.now = w.now.Add(releaseGrace)
	w.observe(false, false)
	if report := w.report(); w.state.Authorized != nil || w.state.Drift != v1alpha1.StateDrifted || !strings.Contains(report, "look again in 15s") {
		t.Fatalf("after the grace:\n%s", report)
	}
	w.released.Bodies, w.released.Pending = made, false
	w.observe(false, false)
	if w.state.Drift != v1alpha1.StateInSync || w.state.Authorized == nil {
		t.Errorf("once its baseline is authorized:\n%s", w.report())
	}
}

// A stamp of the executor that was forged while no policy stamped proves nothing once one does.
func TestAForgedStampOfTheExecutorStaysForged(t *testing.T) {
	w := newReleaseWorld(t)
	w.released = updates(t)
	w.policy.remove()
	w.update(write{user: "mallory", forged: testUsers["executor"], changes: setting(t, w.live.Body)})
	w.observe(false, false)
	w.policy.make(w.now, w.rv)
	w.statusWrite()
	for range 3 {
		w.now = w.now.Add(time.Minute)
		w.observe(false, false)
	}
	if w.state.Authorized.Number != 1 || w.state.Drift != v1alpha1.StateDrifted {
		t.Errorf("authorized is %+v:\n%s", w.state.Authorized, w.report())
	}
}

// The webhook's stamp alone is no proof: the record of the executor's write is.
func TestTheWebhooksStampOfTheExecutorNeedsItsRecord(t *testing.T) {
	for name, tc := range map[string]struct {
		record string
		want   v1alpha1.DriftState
	}{
		"with the record":    {"yes", v1alpha1.StateInSync},
		"without the record": {"no", v1alpha1.StateDrifted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.config.Stamp, w.config.Grace, w.healthy, w.policy.webhook = StampWebhook, maxGrace, true, true
			w.policy.remove()
			w.guard("workloads", testGuardSpec(), w.now.Add(-time.Hour))
			w.create(write{user: testUsers["ci"]}, testDeployment)
			w.observe(false, false)
			w.released = updates(t)
			wr := byExecutor(setting(t, w.live.Body))
			wr.record = tc.record
			w.update(wr)
			w.observe(false, false)
			w.now = w.now.Add(proofGrace)
			w.observe(false, false)
			if w.state.Drift != tc.want {
				t.Errorf("it is %s:\n%s", w.state.Drift, w.report())
			}
		})
	}
}

func TestFindDistrusting(t *testing.T) {
	compile := func(name string, writers v1alpha1.Writers) *Guard {
		g, errs := Compile(GuardRef{Namespace: "shop", Name: name}, v1alpha1.GuardSpec{
			Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}, TrustedWriters: writers,
		}, nil, testNow)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return g
	}
	ci := compile("ci", v1alpha1.Writers{Users: []string{"ci"}})
	team := compile("team", v1alpha1.Writers{Groups: []string{"team"}})
	inert := CompileInert(GuardRef{Namespace: "shop", Name: "broken"}, v1alpha1.GuardSpec{
		Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}, TrustedWriters: v1alpha1.Writers{Users: []string{"ci"}},
	}, nil, testNow)
	for name, tc := range map[string]struct {
		guards []*Guard
		id     Identity
		want   string
	}{
		"no guard":                       {nil, Identity{User: "ci"}, ""},
		"a guard that trusts the user":   {[]*Guard{ci}, Identity{User: "ci"}, ""},
		"by a group":                     {[]*Guard{ci, team}, Identity{User: "ci", Groups: []string{"team"}}, ""},
		"a second guard that does not":   {[]*Guard{ci, team}, Identity{User: "ci"}, "SpecGuard/team"},
		"a guard that does not compile":  {[]*Guard{ci, inert}, Identity{User: "ci"}, "SpecGuard/broken"},
		"a user of whom no guard speaks": {[]*Guard{ci}, Identity{User: "mallory"}, "SpecGuard/ci"},
	} {
		t.Run(name, func(t *testing.T) {
			rules := NewGuardSet(tc.guards, nil, System{}).Rules(Query{Namespace: "shop", GVK: canon.ParseGVK("apps/v1", "Deployment"), Now: testNow})
			if got := rules.FindDistrusting(tc.id); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

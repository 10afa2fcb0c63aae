// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// clockOff is the real clock but for what time it says it is. Timers run in real
// time, as they do where only the wall clock is wrong.
type clockOff struct {
	clock.RealClock
	by time.Duration
}

// Now implements clock.PassiveClock.
func (c clockOff) Now() time.Time { return time.Now().Add(c.by) }

// Since implements clock.PassiveClock.
func (c clockOff) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// assessorAt runs the assessor in this process, as the binary would with a clock
// that is off by so much, until stop is called.
func (w *world) assessorAt(off time.Duration, redisAddress string) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	store := details.NewClient(details.Config{Address: redisAddress})
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- assessor.Run(ctx, assessor.Setup{
			Config: apiserver.Impersonate(w.c.Config, assessorUser), Namespace: rendered.Namespace, Retention: 24 * time.Hour,
			Rules:   specguard.Config{Key: []byte("a digest key of the tests"), Grace: 500 * time.Millisecond, Stamp: specguard.StampInProcess},
			Records: details.NewReader(store, "plumbline"), Registry: prometheus.NewRegistry(), Log: logr.Discard(),
			Clock: clockOff{by: off}, Ready: func() { close(ready) },
		})
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the assessor ended with %v", err)
		}
		_ = store.Close() // nothing uses it any more
	}
	w.t.Cleanup(stop)
	poll.Ready(w.t, patience, "the assessor", ready, ended)
	return stop
}

// told waits until a Baseline says more than that all is well.
func (w *world) told(name string) string {
	w.t.Helper()
	return guarded.Describe(w.Until(name, "something is told of "+name, func(b *v1alpha1.Baseline) error {
		if guarded.Describe(b) == inSync {
			return fmt.Errorf("nothing is")
		}
		return nil
	}))
}

// deleted has a user delete Deployments of CI until a record tells who it was,
// and returns the last one's name. A call to Redis has 50 ms, which a busy
// machine may not give to each.
func (w *world) deleted(user, prefix, want string) (name string) {
	w.t.Helper()
	for n := range 10 {
		name = fmt.Sprintf("%s-%d", prefix, n)
		w.Deploy(ci, name)
		w.untilAuthorized(name, 1)
		w.Delete(user, name)
		switch text := w.told(name); text {
		case want:
			return name
		case "Missing: Removed object by ? (Unknown, None)":
		default:
			w.t.Fatalf("%s reads %q, want %q", name, text, want)
		}
	}
	w.t.Fatal("no record tells who deleted")
	return ""
}

// scaled is deleted for /scale, on one Deployment.
func (w *world) scaled(user, name string) {
	w.t.Helper()
	want := fmt.Sprintf("Drifted: Changed /spec/replicas by %s (Untrusted, Admission)", user)
	for n := range 10 {
		w.Scale(user, name, 10+n)
		if w.told(name) == want || w.readsSoon(name, want) {
			return
		}
	}
	w.t.Fatal("no record tells who scales")
}

// readsSoon gives a late record a second to be told of.
func (w *world) readsSoon(name, want string) bool {
	w.t.Helper()
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		b, err := w.Baseline(name)
		w.Must(err)
		if guarded.Describe(b) == want {
			return true
		}
	}
	return false
}

// shown checks that a time is the assessor's, off by so much from ours.
func (w *world) shown(what string, at *metav1.Time, since time.Time, off time.Duration) {
	w.t.Helper()
	if at == nil {
		w.t.Errorf("no time %s", what)
		return
	}
	// Times are stored in whole seconds.
	if ours := at.Add(-off); ours.Before(since.Add(-time.Second)) || ours.After(time.Now()) {
		w.t.Errorf("the time %s is %s, off by %s from what was between %s and now", what, at, off, since)
	}
}

// TestAnAssessorWhoseClockIsOffByAnHourFindsNamesAndAuthorizesAsEver has the
// assessor an hour or more away from the API server, the webhook and Redis, and then
// puts its clock right.
func TestAnAssessorWhoseClockIsOffByAnHourFindsNamesAndAuthorizesAsEver(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": time.Hour, "far ahead": 3 * time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			rotation.Share(t, 3)
			w := shared.newWorld(t)
			// The path of a socket may have 107 bytes, and t.TempDir is too long.
			directory, err := os.MkdirTemp("", "fc") //nolint:usetesting // see above
			w.Must(err)
			t.Cleanup(func() { _ = os.RemoveAll(directory) }) // under the system's temporary directory
			store, err := server.StartRedis(t.Context(), directory)
			w.Must(err)
			t.Cleanup(store.Kill)
			w.webhook("--redis-address=" + store.Socket)
			since := time.Now()
			stop := w.assessorAt(off, store.Socket)

			w.SecondOver(w.Deploy(alice, "older").CreationTimestamp.Time)
			w.UnderGuard()
			imported := w.untilAuthorized("older", 1)
			for _, name := range []string{"edited", "released", "scaled", "later"} {
				w.Deploy(ci, name)
				w.untilAuthorized(name, 1)
			}
			w.Deploy(alice, "foreign")
			w.UntilIs("foreign", "Drifted: Added object by alice (Untrusted, WriterStamp)")
			w.SetImage(alice, "edited", evilImage)
			edited := w.UntilIs("edited", evil)
			w.SetImage(ci, "released", "registry.example/shop:2")
			released := w.untilAuthorized("released", 2)
			w.scaled(bob, "scaled")
			lost := w.deleted(alice, "lost", "Missing: Removed object by alice (Untrusted, Admission)")
			retired := w.deleted(ci, "retired", "Retired")
			if imported.Spec.Authorized.Origin != v1alpha1.OriginImported || released.Spec.Authorized.Origin != v1alpha1.OriginCreated {
				t.Errorf("origins are %s and %s", imported.Spec.Authorized.Origin, released.Spec.Authorized.Origin)
			}

			w.shown("of the drift", edited.Status.FirstSeenTime, since, off)
			w.shown("of the release", &released.Spec.Authorized.AuthorizationTime, since, off)
			ready := meta.FindStatusCondition(edited.Status.Conditions, v1alpha1.ConditionReady)
			w.shown("of the condition", &ready.LastTransitionTime, since, off)

			// The clock is put right.
			names := []string{"older", "edited", "released", "scaled", "foreign", "later", lost, retired}
			before := w.standing(names)
			stop()
			w.assessorAt(0, store.Socket)
			w.SetImage(alice, "later", evilImage)
			later := w.UntilIs("later", evil)
			w.shown("of drift that came later", later.Status.FirstSeenTime, since, 0)
			w.SetImage(ci, "released", "registry.example/shop:3")
			w.untilAuthorized("released", 3)
			w.SetEnv(ci, "edited", "V", "1")
			w.Until("edited", "what CI changed is authorized, and nothing else", func(b *v1alpha1.Baseline) error {
				if guarded.Authorized(b) != 2 || guarded.Describe(b) != evil {
					return fmt.Errorf("authorized is number %d", guarded.Authorized(b))
				}
				return nil
			})
			before["later"], before["released"], before["edited"] = evil+" 1", inSync+" 3", evil+" 2"
			for name, now := range w.standing(names) {
				if now != before[name] {
					t.Errorf("%s is %q with the right clock, and was %q", name, now, before[name])
				}
			}
		})
	}
}

// standing is how Baselines read, and the number of what they authorize.
func (w *world) standing(names []string) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for _, name := range names {
		b, err := w.Baseline(name)
		w.Must(err)
		out[name] = fmt.Sprintf("%s %d", guarded.Describe(b), guarded.Authorized(b))
	}
	return out
}

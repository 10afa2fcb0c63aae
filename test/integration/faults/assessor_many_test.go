// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// counts waits until a guard counts so many drifting objects.
func (w *world) counts(limit time.Duration, g *v1alpha1.SpecGuard, objects, drifted int) {
	w.t.Helper()
	w.within(limit, fmt.Sprintf("%d of %d objects drift", drifted, objects), func() error {
		if err := w.c.Admin.Get(w.Ctx(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		if int(g.Status.Objects) != objects || int(g.Status.Drifted) != drifted {
			return fmt.Errorf("it counts %d of %d", g.Status.Drifted, g.Status.Objects)
		}
		return nil
	})
}

// each does something to many objects at once.
func (w *world) each(n int, do func(name string) error) {
	w.t.Helper()
	var all errgroup.Group
	all.SetLimit(32)
	for i := range n {
		all.Go(func() error { return do(fmt.Sprint("web-", i)) })
	}
	w.Must(all.Wait())
}

// TestMassDriftIsOneFreezeAndOneEventAndNoStorm has two objects in five drift at
// once, as when an upgrade adds a default. Each drift is told once, by the object
// and by its Baseline, and what they have in common once by the guard.
func TestMassDriftIsOneFreezeAndOneEventAndNoStorm(t *testing.T) {
	const objects, drifting = 20, 8
	w := shared.newWorld(t)
	h, stop := w.record()
	p := w.assessor("")
	g := w.UnderGuard()
	ciClient, aliceClient := w.As(ci), w.As(alice)
	w.each(objects, func(name string) error { return ciClient.Create(w.Ctx(), guarded.Deployment(w.Name, name)) })
	w.counts(patience, g, objects, 0)
	before := w.writes(p)
	w.each(drifting, func(name string) error {
		return aliceClient.Patch(w.Ctx(), w.Named(name), guarded.ImagePatch(evilImage))
	})
	w.counts(patience, g, objects, drifting)
	if !v1alpha1.IsDegradedFor(g.Status.Conditions, v1alpha1.ReasonMassDrift) {
		t.Errorf("not frozen; the conditions are %+v", g.Status.Conditions)
	}
	w.Eventually("the guard says it", func() error {
		if n := len(w.events("SpecGuard", "", "MassDrift")); n != 1 {
			return fmt.Errorf("%d events MassDrift", n)
		}
		return nil
	})
	// Something later is dealt with, so that nothing is left to come.
	w.SetImage(ci, "web-19", "registry.example/shop:2")
	w.untilAuthorized("web-19", 2)
	if n := len(w.events("SpecGuard", "", "MassDrift")); n != 1 {
		t.Errorf("%d events MassDrift, want 1", n)
	}
	w.Eventually("every drift is told", func() error {
		if told := len(w.events("Deployment", "", "DriftDetected")); told != drifting {
			return fmt.Errorf("%d events", told)
		}
		return nil
	})
	// A status and an event for each, and what the guard counts meanwhile.
	if n := w.writes(p) - before; n > 2*drifting+20 {
		t.Errorf("%v writes for %d drifting objects", n, drifting)
	}
	stop()
	for i := range objects {
		name := fmt.Sprint("web-", i)
		if i < drifting {
			h.only(name, inSync, evil)
			if n := len(h.of(name)); n > 6 {
				t.Errorf("the Baseline of %s was written %d times", name, n)
			}
		} else {
			h.only(name, inSync)
		}
	}
}

// TestABotThatRevertsEveryFiveSecondsIsAFightThatNamesBoth lets alice insist
// against a pipeline.
func TestABotThatRevertsEveryFiveSecondsIsAFightThatNamesBoth(t *testing.T) {
	long(t)
	w := shared.newWorld(t)
	p := w.assessor("")
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.untilAuthorized("web", 1)
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for range 3 {
		w.SetImage(alice, "web", evilImage)
		w.UntilIs("web", evil)
		<-tick.C // the bot's period, which is what is tried here
		w.SetImage(ci, "web", guarded.Image)
		w.UntilIs("web", inSync)
	}
	b := w.Until("web", "the fight is recognized", func(b *v1alpha1.Baseline) error {
		if b.Status.Contention == nil || len(b.Status.Contention.With) != 2 {
			return fmt.Errorf("contention is %+v", b.Status.Contention)
		}
		return nil
	})
	contended := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionDegraded)
	if contended == nil || !strings.Contains(contended.Message, alice) || !strings.Contains(contended.Message, ci) || !strings.Contains(contended.Message, guarded.ImagePath) {
		t.Errorf("Degraded is %+v, want both names and the place", contended)
	}
	w.Eventually("it is told once", func() error {
		if n := len(w.events("Deployment", "web", "ContentionDetected")); n != 1 {
			return fmt.Errorf("%d events", n)
		}
		return nil
	})
	w.alive(p)
}

// TestTenThousandObjectsThatChangeAtOnceAreAllFound measures how long that takes
// and the memory it needs. PLUMBLINE_FAULTS_OBJECTS is another number.
func TestTenThousandObjectsThatChangeAtOnceAreAllFound(t *testing.T) {
	long(t)
	n := 10_000
	if text := os.Getenv("PLUMBLINE_FAULTS_OBJECTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	// The chart's default limit of memory.
	const limit = 512 << 20
	patient := 2*time.Minute + time.Duration(n)*50*time.Millisecond
	t.Setenv("GOMEMLIMIT", "400MiB")
	// So many objects would slow down every start of an assessor after it.
	w := ownCluster(t).newWorld(t)
	p := w.assessor("")
	g := w.UnderGuard()
	ciClient, aliceClient := w.As(ci), w.As(alice)
	began := time.Now()
	w.each(n, func(name string) error { return ciClient.Create(w.Ctx(), guarded.Deployment(w.Name, name)) })
	w.counts(patient, g, n, 0)
	t.Logf("%d objects created and authorized after %s", n, time.Since(began).Round(time.Second))
	began = time.Now()
	w.each(n, func(name string) error {
		return aliceClient.Patch(w.Ctx(), w.Named(name), guarded.ImagePatch(evilImage))
	})
	written := time.Since(began)
	w.counts(patient, g, n, n)
	peak := peakMemory(t, p)
	t.Logf("%d objects changed in %s, all found after %s; peak of memory %d MiB",
		n, written.Round(time.Second), time.Since(began).Round(time.Second), peak>>20)
	if peak > limit {
		t.Errorf("the peak of memory is %d MiB, the limit is %d MiB", peak>>20, limit>>20)
	}
	var list v1alpha1.BaselineList
	w.Must(w.c.Admin.List(w.Ctx(), &list, client.InNamespace(w.Name)))
	for i := range list.Items {
		if got := guarded.Describe(&list.Items[i]); got != evil {
			t.Fatalf("%s reads %q, want %q", list.Items[i].Name, got, evil)
		}
	}
}

// peakMemory is the most that a process ever held, in bytes.
func peakMemory(t *testing.T, p *server.Process) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("the process has no VmHWM")
	return 0
}

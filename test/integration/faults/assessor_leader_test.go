// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// candidate starts an assessor that works only while it leads.
func (w *world) candidate() *server.Process {
	w.t.Helper()
	return w.candidateOf(w.c.Config)
}

// candidateOf is a candidate that reaches the API server in a way of its own.
func (w *world) candidateOf(config *rest.Config) *server.Process {
	w.t.Helper()
	p := startProcessOf(w.t, config, "assessor", assessorUser, assessorFlags(w.t, "--leader-elect=true")...)
	w.ready(p)
	return p
}

// leader is who holds the lease of the assessors; empty if nobody does.
func (w *world) leader() (string, error) {
	var lease coordinationv1.Lease
	key := types.NamespacedName{Namespace: rendered.Namespace, Name: "plumbline-assessor"}
	if err := w.c.Admin.Get(w.Ctx(), key, &lease); err != nil {
		return "", err
	}
	if lease.Spec.HolderIdentity == nil {
		return "", nil
	}
	return *lease.Spec.HolderIdentity, nil
}

// untilLed waits until somebody else than before leads.
func (w *world) untilLed(before string) (leader string) {
	w.t.Helper()
	w.Eventually("somebody leads", func() (err error) {
		if leader, err = w.leader(); err == nil && (leader == "" || leader == before) {
			err = fmt.Errorf("the leader is %q", leader)
		}
		return err
	})
	return leader
}

// writes is how many requests a process has made that change something.
func (w *world) writes(p *server.Process) float64 {
	w.t.Helper()
	sum := 0.0
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		n, err := p.Metric(w.Ctx(), "plumbline_api_requests_total", `method="`+method+`"`)
		w.Must(err)
		sum += n
	}
	return sum
}

// TestOfTwoAssessorsOneActsAndTheOtherTakesOver ends the leader as a rolling
// update does: it gives the lease back.
func TestOfTwoAssessorsOneActsAndTheOtherTakesOver(t *testing.T) {
	w := shared.newWorld(t)
	h, stop := w.record()
	leader := w.candidate()
	first := w.untilLed("")
	standby := w.candidate()
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.untilAuthorized("web", 1)
	w.SetImage(alice, "web", evilImage)
	w.UntilIs("web", evil)
	if n := w.writes(standby); n != 0 {
		t.Errorf("the standby made %v writes, want none", n)
	}
	if w.writes(leader) == 0 {
		t.Error("the leader made no write")
	}
	w.Must(leader.Stop())
	w.untilLed(first)
	w.SetImage(ci, "web", guarded.Image)
	w.UntilIs("web", inSync)
	if w.writes(standby) == 0 {
		t.Error("the new leader made no write")
	}
	stop()
	h.only("web", inSync, evil)
}

// TestALeaderPausedPastItsLeaseWritesNothingWrongAndEnds stops the leader with
// its writes on their way, lets another one take over and go on, and then has
// the old writes arrive and the old leader wake up.
func TestALeaderPausedPastItsLeaseWritesNothingWrongAndEnds(t *testing.T) {
	long(t)
	w := shared.newWorld(t)
	h, stop := w.record()
	way := holdWrites(t, w.c)
	old := w.candidateOf(way.through(w.c.Config))
	first := w.untilLed("")
	heir := w.candidate()
	w.UnderGuard()
	names := []string{"drifts", "heals", "released", "quiet", "accepted"}
	for _, name := range names {
		w.Deploy(ci, name)
		w.untilAuthorized(name, 1)
	}
	w.SetImage(alice, "heals", evilImage)
	w.UntilIs("heals", evil)

	way.hold()
	w.SetImage(alice, "drifts", evilImage)
	w.SetImage(alice, "heals", guarded.Image)
	w.SetImage(ci, "released", "registry.example/shop:2")
	w.SetImage(ci, "accepted", "registry.example/shop:2")
	w.Eventually("the leader's writes are on their way", func() error {
		statuses := way.holds("PUT", "deployments.apps.drifts/status") + way.holds("PUT", "deployments.apps.heals/status")
		if revisions := way.holds("POST", "/baselinerevisions"); statuses < 2 || revisions < 2 {
			return fmt.Errorf("%d statuses and %d revisions are held up", statuses, revisions)
		}
		return nil
	})
	w.Must(old.Signal(syscall.SIGSTOP))
	w.untilLed(first)
	w.UntilIs("drifts", evil)
	w.UntilIs("heals", inSync)
	w.untilAuthorized("released", 2)
	w.untilAuthorized("accepted", 2)
	// The heir goes on, so that the old writes are of the past in every way.
	w.SetImage(alice, "drifts", guarded.Image)
	w.UntilIs("drifts", inSync)
	w.SetImage(ci, "released", "registry.example/shop:3")
	w.untilAuthorized("released", 3)
	w.SetImage(alice, "heals", evilImage)
	w.UntilIs("heals", evil)
	w.SetImage(alice, "accepted", evilImage)
	w.accept(bob, w.UntilIs("accepted", evil))
	w.untilAuthorized("accepted", 3)

	way.let()
	w.Must(old.Signal(syscall.SIGCONT))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	how, err := old.Exited(ctx)
	w.Must(err)
	if how == nil || !strings.Contains(old.Said(), "leader election lost") {
		t.Errorf("the old leader ended with %v, want a failure that says why; it said:\n%s", how, old.Said())
	}
	w.SetImage(alice, "quiet", evilImage)
	w.UntilIs("quiet", evil)
	w.UntilIs("drifts", inSync)
	w.UntilIs("heals", evil)
	w.untilAuthorized("released", 3)
	if b := w.untilAuthorized("accepted", 3); b.Spec.Authorized.By != bob {
		t.Errorf("what bob accepted was taken back: authorized is %+v", b.Spec.Authorized)
	}
	w.alive(heir)
	stop()
	h.only("drifts", inSync, evil)
	h.only("heals", inSync, evil)
	h.only("released", inSync)
	h.only("quiet", inSync, evil)
	h.only("accepted", inSync, evil)
	if n := len(w.revisions("released")); n != 3 {
		t.Errorf("%d revisions are stored, want 3", n)
	}
}

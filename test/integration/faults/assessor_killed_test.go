// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// TestAnAssessorKilledAtRandomPointsEndsWhereAnUndisturbedOneDoes has the same
// writes made in two namespaces. In the one the assessor is left in peace; in the
// other it is killed somewhere among the writes of each round. No two writes of a
// round are to one object, so that a gap hides one write at most: everything must
// then be known as if nothing had happened.
func TestAnAssessorKilledAtRandomPointsEndsWhereAnUndisturbedOneDoes(t *testing.T) {
	rounds := 3
	if os.Getenv("PLUMBLINE_FAULTS") == "long" {
		rounds = 20
	}
	calm := shared.newWorld(t)
	p := calm.assessor("")
	calm.UnderGuard()
	calm.start()
	var want []map[string]string
	for round := 1; round <= rounds; round++ {
		calm.play(round)
		want = append(want, calm.settled(round))
	}
	calm.Must(p.Stop())

	w := shared.newWorld(t)
	h, stop := w.record()
	p = w.assessor("")
	w.UnderGuard()
	w.start()
	random, undone := seed.Random(t), 0
	for round := 1; round <= rounds; round++ {
		w.playWhileKilled(round, p, random)
		undone += w.unlike(want[round-1])
		p = w.assessor("")
		if diff := cmp.Diff(want[round-1], w.settled(round)); diff != "" {
			t.Fatalf("round %d ended otherwise than undisturbed (-want +got):\n%s", round, diff)
		}
	}
	t.Logf("%d rounds; %d Baselines were behind when the assessor was killed", rounds, undone)
	if undone == 0 {
		t.Error("the assessor was never killed with anything left to do")
	}
	stop()
	h.only("released", inSync)
	h.only("toggled", inSync, evil)
	h.only(fmt.Sprint("made-", rounds), inSync)
}

const (
	unexpected = "Drifted: Added object by alice (Untrusted, WriterStamp)"
	missing    = "Missing: Removed object by ? (Unknown, None)"
)

// start makes the objects that exist before the first round.
func (w *world) start() {
	w.t.Helper()
	for _, name := range []string{"released", "toggled"} {
		w.Deploy(ci, name)
		w.untilAuthorized(name, 1)
	}
}

// play makes the writes of a round.
func (w *world) play(round int) {
	w.t.Helper()
	w.SetImage(ci, "released", fmt.Sprint("registry.example/shop:1.", round))
	image := evilImage
	if round%2 == 0 {
		image = guarded.Image
	}
	w.SetImage(alice, "toggled", image)
	w.Deploy(ci, fmt.Sprint("made-", round))
	w.Deploy(alice, fmt.Sprint("strange-", round))
	if round > 1 {
		w.Must(w.As(alice).Delete(w.Ctx(), w.Named(fmt.Sprint("made-", round-1))))
	}
}

// playWhileKilled plays a round, and kills the assessor at a random moment of it
// or shortly after it.
func (w *world) playWhileKilled(round int, p *server.Process, random *rand.Rand) {
	w.t.Helper()
	span := 400 * time.Millisecond
	if round == 1 {
		span = 20 * time.Millisecond // before the last of the writes, so that something is left to do
	}
	moment := time.Duration(random.Int64N(int64(span)))
	var killer sync.WaitGroup
	var failed error
	killer.Go(func() {
		<-time.After(moment)
		failed = p.Kill()
	})
	w.play(round)
	killer.Wait()
	w.Must(failed)
}

// expected is how the Baselines read after a round.
func expected(round int) map[string]string {
	toggled := evil
	if round%2 == 0 {
		toggled = inSync
	}
	out := map[string]string{
		"released": inSync, "toggled": toggled,
		fmt.Sprint("made-", round): inSync, fmt.Sprint("strange-", round): unexpected,
	}
	if round > 1 {
		out[fmt.Sprint("made-", round-1)] = missing
	}
	return out
}

// settled waits until a round is dealt with, and tells all that is known then of
// its objects.
func (w *world) settled(round int) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for name, reading := range expected(round) {
		b := w.Until(name, fmt.Sprintf("round %d: %s reads %q", round, name, reading), func(b *v1alpha1.Baseline) error {
			if name == "released" && guarded.Authorized(b) != int64(round)+1 {
				return fmt.Errorf("authorized is number %d", guarded.Authorized(b))
			}
			if err := guarded.Reads(reading)(b); err != nil {
				return err
			}
			return current(b)
		})
		out[name] = account(b)
		if a := b.Spec.Authorized; a != nil && !w.holds(a) {
			w.t.Errorf("round %d: the authorized revision %s of %s is not stored", round, a.Revision, name)
		}
	}
	return out
}

// account is all that must not depend on when the assessor ran.
func account(b *v1alpha1.Baseline) string {
	text := guarded.Describe(b)
	if a := b.Spec.Authorized; a != nil {
		text += fmt.Sprintf("; revision %d %s %s by %s, hash %s", a.Number, a.Revision, a.Origin, a.By, a.Hash)
	}
	return text + fmt.Sprintf("; observed %s, guards %q, masks %v", b.Status.Observed.Hash, b.Status.Guards, b.Status.Masks)
}

// holds tells whether the body of an authorized state is there.
func (w *world) holds(a *v1alpha1.AuthorizedState) bool {
	w.t.Helper()
	for _, r := range w.allRevisions() {
		if r.Name == a.Revision && r.Spec.Hash == a.Hash && r.Spec.Number == a.Number {
			return true
		}
	}
	return false
}

// unlike counts the Baselines that do not read as they will in the end.
func (w *world) unlike(want map[string]string) int {
	w.t.Helper()
	n := 0
	for name, text := range want {
		if b, err := w.Baseline(name); err != nil || account(b) != text {
			n++
		}
	}
	return n
}

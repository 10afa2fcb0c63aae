// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/traffic/record"
)

const (
	chainUID   = "e-1"
	releaseUID = "r-1"
	hash       = "pl1:sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// tb is what *testing.T and *rapid.T have in common.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// chain is a store with the records of one chain, and the bodies beside them.
type chain struct {
	records []evidence.Record
	bodies  map[string][]byte
	// writes counts the writes, and cut ends the writer at one of them: before it if early, else after it.
	writes, cut int
	early       bool
}

// errCut is what ends a writer.
var errCut = errors.New("the writer is dead")

func (c *chain) write(store func()) error {
	c.writes++
	if c.writes == c.cut && c.early {
		return errCut
	}
	store()
	if c.writes == c.cut {
		return errCut
	}
	return nil
}

// look is one look of a writer that knows nothing but the chain.
func (c *chain) look(t tb, f record.Facts) error {
	t.Helper()
	state := c.state(t)
	for _, r := range record.Next(state.Cursors, &f) {
		if err := c.append(t, state, r); err != nil {
			return err
		}
	}
	if f.Gone { // its cursor is gone as well: the caller looks at what is gone once
		return nil
	}
	if left := record.Next(c.state(t).Cursors, &f); len(left) > 0 {
		t.Fatalf("records are missing after a look: %+v", left)
	}
	return nil
}

func (c *chain) append(t tb, state *record.State, r evidence.Record) error {
	t.Helper()
	r.Builder = evidence.Builder{Version: "test"}
	if state.IsSnapshotDue() {
		body, err := state.Cursors.Encode()
		if err != nil {
			t.Fatalf("%v", err)
		}
		digest := evidence.Digest(body)
		if err := c.write(func() { c.bodies[digest] = body }); err != nil {
			return err
		}
		r.Bodies = []evidence.Body{{Of: evidence.BodyCursors, Digest: digest}}
	}
	r.Chain.Sequence = int64(len(c.records)) + 1
	if err := r.Validate(); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if err := c.write(func() { c.records = append(c.records, r.Normalized()) }); err != nil {
		return err
	}
	state.Apply(&r)
	return nil
}

// state is folded from the newest records, as a writer does that begins.
func (c *chain) state(t tb) *record.State {
	t.Helper()
	newest := c.records[max(0, len(c.records)-2*record.SnapshotEvery):]
	state, err := record.Fold(newest, func(digest string) ([]byte, error) { return c.bodies[digest], nil })
	if err != nil {
		t.Fatalf("%v", err)
	}
	if state == nil {
		state = record.FoldAll(c.records)
	}
	return state
}

// told lists the events of the chain in order, without those of other kinds.
func (c *chain) told(kinds ...evidence.Kind) []string {
	var out []string
	for i := range c.records {
		if r := &c.records[i]; slices.Contains(kinds, r.Kind) {
			out = append(out, wordsOf(r))
		}
	}
	return out
}

func wordsOf(r *evidence.Record) string {
	d := r.Delivery
	words := []string{string(r.Kind)}
	switch {
	case d.Decision != nil:
		words = append(words, fmt.Sprint(d.Decision.Number), d.Decision.Event, d.Decision.From+">"+d.Decision.To)
	case d.Work != nil:
		words = append(words, d.Work.Name, r.Result.State)
	case d.Range != nil:
		words = append(words, fmt.Sprintf("%d-%d", d.Range.First, d.Range.Last))
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// world is what is stored about one release.
type world struct {
	release *v1alpha1.ABRelease
	works   []v1alpha1.ReleaseWork
	clock   time.Time
	number  int64
}

func newWorld() *world {
	return &world{clock: now, release: &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: releaseUID},
		Spec:       v1alpha1.ABReleaseSpec{Rollout: &v1alpha1.Rollout{RequestedBy: "alice"}},
		Status:     v1alpha1.ABReleaseStatus{Rollout: &v1alpha1.RolloutStatus{}},
	}}
}

func (w *world) facts() record.Facts {
	works := make([]v1alpha1.ReleaseWork, 0, len(w.works))
	for i := range w.works {
		works = append(works, *w.works[i].DeepCopy())
	}
	return record.Facts{Chain: chainUID, Environment: "production", Release: w.release.DeepCopy(), Works: works, Now: w.clock}
}

// decide adds a line to the history, as the discovery server does.
func (w *world) decide(event string, percent int32) int64 {
	w.clock = w.clock.Add(time.Second)
	in, number := w.release.Status.Rollout, int64(1)
	if n := len(in.History); n > 0 {
		number = in.History[n-1].Number + 1
	}
	weight := v1alpha1.Percent(percent)
	in.History = append(in.History, v1alpha1.RolloutEvent{Number: number, EventTime: metav1.NewTime(w.clock), Run: 1, Event: event, TrafficPercentage: &weight, Message: "m"})
	in.History = in.History[max(0, len(in.History)-64):]
	return number
}

// ask makes a work.
func (w *world) ask(verb v1alpha1.ReleaseWorkVerb, replicas int32) *v1alpha1.ReleaseWork {
	w.number++
	w.works = append(w.works, v1alpha1.ReleaseWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-1-%d", w.number), UID: types.UID(fmt.Sprintf("w-%d", w.number))},
		Spec: v1alpha1.ReleaseWorkSpec{
			ReleaseName: "web", ReleaseUID: releaseUID, Run: 1, Number: w.number, Verb: verb, Variation: "canary", Replicas: &replicas, ExpectedHash: hash,
		},
	})
	return &w.works[len(w.works)-1]
}

// intend stores an intent of a work.
func (w *world) intend(of *v1alpha1.ReleaseWork, version string) {
	w.clock = w.clock.Add(time.Second)
	of.Status.Phase = v1alpha1.WorkRunning
	of.Status.TargetRef = &v1alpha1.ReleaseWorkTarget{Kind: v1alpha1.WorkTargetDeployment, Name: "web-canary", UID: "c-1"}
	of.Status.Intent = &v1alpha1.ReleaseWorkIntent{UID: "c-1", ResourceVersion: version, TemplateHash: hash, StorageTime: metav1.NewTime(w.clock)}
}

// end stores the end of a work.
func (w *world) end(of *v1alpha1.ReleaseWork, phase v1alpha1.ReleaseWorkPhase) {
	w.clock = w.clock.Add(time.Second)
	of.Status.Phase, of.Status.EndTime = phase, new(metav1.NewTime(w.clock))
	if phase == v1alpha1.WorkSucceeded && of.Status.Intent != nil {
		of.Status.TemplateHash = hash
		of.Status.Result = &v1alpha1.ReleaseWorkResult{ResourceVersion: "9", Origin: v1alpha1.ResultResponse}
	}
}

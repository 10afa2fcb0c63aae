// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

var (
	testKey = []byte("a key of this test")
	testNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

const testDeployment = `{"spec":{"replicas":3,"paused":false,"template":{"metadata":{"labels":{"app":"web"}},
"spec":{"containers":[{"name":"app","image":"registry.example/shop/web:1","args":["serve","--safe"],
"env":[{"name":"MODE","value":"live"}],"ports":[{"containerPort":80,"protocol":"TCP"}],
"resources":{"limits":{"cpu":"1"}}}]}}}}`

// world plays the API server for one object: generation, resourceVersion,
// writer stamp and managedFields move as kube-apiserver 1.36 moves them, and the
// watch, the webhook's records and the assessor's memory can each be cut off.
type world struct {
	t       testing.TB
	gvk     canon.GVK
	now     time.Time
	rules   Rules
	guards  []*Guard
	exempt  []*Exception
	config  Config
	healthy bool
	policy  stampPolicy
	scale   ScaleSubresource

	uid        int
	rv         int
	generation int64
	exists     bool
	live       Version
	createdAt  time.Time
	created    bool // the creation has not been delivered yet
	seen       *Version

	state   State
	records []WriteRecord
	late    []WriteRecord
	last    WriteRecord // as made last, late or not
	arrived time.Time   // of the observation that is being retried
	effects []Effect
	steps   int

	remembered *v1alpha1.BaselineStatus
	lost       bool     // the BaselineRevision
	kept       []byte   // the body of the newest one
	former     [][]byte // the bodies of all revisions before the newest, oldest first
	untracked  bool     // managedFields were cleared
	size       func([]byte) int
	since      time.Time // there are Baselines
	applied    []byte    // the configuration that kubectl apply kept
	released   *Released // what the run of a release may have left
}

func newWorld(t testing.TB) *world {
	target := v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	return &world{
		t: t, gvk: canon.ParseGVK("apps/v1", "Deployment"), now: testNow, policy: stampPolicy{inForce: true},
		config: Config{Key: testKey}, state: NewState("deployments.apps.web", target),
	}
}

// guard puts a guard in force that is older than every object made later.
func (w *world) guard(name string, spec v1alpha1.GuardSpec, createdAt time.Time) {
	w.t.Helper()
	if len(spec.Resources) == 0 {
		spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}
	}
	g, errs := Compile(GuardRef{Namespace: "shop", Name: name}, spec, nil, createdAt)
	if len(errs) > 0 {
		w.t.Fatalf("guard %s: %v", name, errs)
	}
	w.guards = slices.DeleteFunc(w.guards, func(o *Guard) bool { return o.ref == g.ref })
	w.guards = append(w.guards, g)
	w.rule()
}

func (w *world) rule() {
	set := NewGuardSet(w.guards, nil, System{Executor: "system:serviceaccount:plumbline-system:executor"})
	w.rules = set.WithExceptions(w.exempt).Rules(Query{Namespace: "shop", Name: "web", GVK: w.gvk, Now: w.now})
}

func (w *world) uidText() string { return "uid-" + strconv.Itoa(w.uid) }

// write is one request that changes the object.
type write struct {
	user    string
	groups  []string
	sub     string
	changes []diff.Change
	record  string // yes, no or late
	manager string
	auth    bool
	forged  string // the stamp that the writer sets himself
	applies bool   // by server-side apply
}

func (w *world) create(wr write, body string) {
	w.t.Helper()
	doc := w.parse([]byte(body))
	w.uid++
	w.rv++
	w.exists, w.created, w.seen, w.generation, w.createdAt = true, true, nil, 1, w.now
	w.live = Version{Body: doc.AppendCanonical(nil), ResourceVersion: strconv.Itoa(w.rv), Generation: 1}
	w.stamp(wr)
	w.record(wr, WriteRecord{Operation: OperationCreate, Generation: 1, HashAfter: string(doc.Hash())})
}

func (w *world) parse(body []byte) *canon.Document {
	w.t.Helper()
	doc, err := canon.Parse(body, w.gvk)
	if err != nil {
		w.t.Fatalf("body: %v", err)
	}
	return doc
}

func (w *world) stamp(wr write) {
	switch {
	case w.policy.isStamped() && wr.sub == "":
		w.live.Writer, w.live.WriterGroups, w.live.Applied = wr.user, nil, Applied{}
	case !w.policy.isStamped() && wr.forged != "":
		w.live.Writer = wr.forged
	}
}

// update applies the changes; a write that changes nothing is none.
func (w *world) update(wr write) {
	w.t.Helper()
	body, skipped, err := diff.Apply(w.live.Body, w.gvk, wr.changes)
	if err != nil || len(skipped) > 0 {
		w.t.Fatalf("writing %v: skipped %v: %v", wr.changes, skipped, err)
	}
	before, after := w.parse(w.live.Body), w.parse(body)
	if before.Hash() == after.Hash() {
		return
	}
	rvBefore := w.live.ResourceVersion
	w.rv++
	w.generation++
	w.live.Body, w.live.Generation, w.live.ResourceVersion = after.AppendCanonical(nil), w.generation, strconv.Itoa(w.rv)
	w.own(wr, diff.Compare(before, after))
	w.stamp(wr)
	r := WriteRecord{Operation: OperationUpdate, Subresource: wr.sub, ResourceVersionBefore: rvBefore}
	for _, c := range diff.Compare(before, after) {
		r.Fields = append(r.Fields, c.Path.String())
	}
	if wr.sub == "scale" {
		n, err := strconv.ParseInt(string(after.Root().Get("spec").Get("replicas").Bytes()), 10, 32)
		if err != nil {
			w.t.Fatalf("scale: %v", err)
		}
		replicas := int32(n)
		r.Replicas = &replicas
	} else {
		r.Generation, r.HashAfter = w.generation, string(after.Hash())
	}
	w.record(wr, r)
}

// statusWrite changes nothing but the resourceVersion.
func (w *world) statusWrite() {
	w.rv++
	w.live.ResourceVersion = strconv.Itoa(w.rv)
	if w.seen != nil { // the watch delivers it, and nothing changed
		w.seen.ResourceVersion = w.live.ResourceVersion
	}
}

func (w *world) remove(wr write) {
	w.record(wr, WriteRecord{Operation: OperationDelete, ResourceVersionBefore: w.live.ResourceVersion})
	w.exists = false
	w.rv++
}

func (w *world) record(wr write, r WriteRecord) {
	r.UID, r.Time, r.FieldManager, r.Authenticated = w.uidText(), w.now, wr.manager, wr.auth
	r.Identity = Identity{User: wr.user, Groups: wr.groups}
	w.last = r
	switch wr.record {
	case "", "yes":
		w.records = append(w.records, r)
	case "late":
		w.late = append(w.late, r)
	case "no":
	default:
		w.t.Fatalf("record=%s", wr.record)
	}
}

// observe delivers what the watch would: the next version after the last one,
// or after a relist the version alone.
func (w *world) observe(relist, terminating bool) {
	w.t.Helper()
	if !w.exists {
		w.step(Absent{Last: w.seen, NamespaceTerminating: terminating, SeenAt: w.now}, nil)
		w.seen = nil
		return
	}
	live := w.live
	live.Managers = slices.Clone(w.live.Managers)
	p := Present{Version: live, UID: w.uidText(), CreatedAt: w.createdAt, Created: w.created && !relist, SeenAt: w.now}
	if !relist {
		p.Prev = w.seen
	}
	if w.arrived.IsZero() {
		w.arrived = w.now
	}
	p.SeenAt = w.arrived
	if retried := w.step(p, nil); !retried {
		w.created, w.seen, w.arrived = false, &live, time.Time{}
	}
}

// step tells whether nothing was decided yet.
func (w *world) step(o Observation, accept *v1alpha1.AcceptRequest) (retried bool) {
	w.t.Helper()
	in := Input{
		State: w.state, Observation: o, Records: w.records, RecordsHealthy: w.healthy,
		Rules: w.rules, Accept: accept, Now: w.now, Config: w.config, Stamps: w.policy.stamps(o), Scale: w.scale,
		EncodedSize: w.size, Released: w.released,
	}
	if Imports(in.State, o, w.rules) {
		in.BaselinesSince = w.since
	}
	if w.lost {
		in.BodyLost, in.State.Body = "the revision is not found", nil
	}
	r, err := Step(in)
	if errors.Is(err, ErrFormerNeeded) {
		in.Former = Former{Loaded: true, Bodies: w.former}
		r, err = Step(in)
	}
	if errors.Is(err, ErrAppliedNeeded) {
		in.Applied = AppliedConfig{Loaded: true, Config: w.applied}
		r, err = Step(in)
	}
	if w.lost && r.State.Body == nil {
		r.State.Body = w.state.Body // to be put back
	}
	if err != nil {
		w.t.Fatalf("step: %v", err)
	}
	w.steps++
	w.state, w.effects = r.State, append(w.effects, r.Effects...)
	for _, e := range r.Effects {
		if stored, is := e.(AuthorizeRevision); is {
			if w.kept != nil {
				w.former = append(w.former, w.kept)
			}
			w.lost, w.kept = false, stored.Body
		}
	}
	if w.state.Oversized != nil && w.state.Body == nil { // as read again for the next step
		w.state.Body = w.kept
	}
	for _, i := range slices.Backward(r.Consumed) {
		w.records = slices.Delete(w.records, i, i+1)
	}
	w.checkInvariants(o)
	_, retried = lastEffect(r.Effects).(Retry)
	return retried
}

// restart forgets everything that is not in the Baseline and its revision.
func (w *world) restart() {
	w.t.Helper()
	var status v1alpha1.BaselineStatus
	w.state.WriteStatus(&status)
	raw, err := json.Marshal(status)
	if err != nil {
		w.t.Fatal(err)
	}
	var stored v1alpha1.BaselineStatus
	if err := json.Unmarshal(raw, &stored); err != nil {
		w.t.Fatal(err)
	}
	w.restartWith(stored)
}

func (w *world) restartWith(status v1alpha1.BaselineStatus) {
	b := &v1alpha1.Baseline{Status: status}
	b.Name, b.Spec.Target, b.Spec.Authorized = w.state.Name, w.state.Target, w.state.Authorized
	w.state = FromBaseline(b, w.state.Body)
	w.seen = nil
}

// parseChanges reads "path = json" and "path gone" lines.
func parseChanges(t testing.TB, body []byte, gvk canon.GVK, input string) []diff.Change {
	t.Helper()
	doc, err := canon.Parse(body, gvk)
	if err != nil {
		t.Fatal(err)
	}
	var changes []diff.Change
	for line := range strings.Lines(input) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		text, value, set := strings.Cut(line, " = ")
		text = strings.TrimSuffix(text, " gone")
		path, err := canon.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		c := diff.Change{Path: path, Op: diff.Removed}
		if set {
			c.Op, c.After = diff.Added, []byte(value)
			if doc.Root().Follow(path).Exists() {
				c.Op = diff.Changed
			}
		}
		changes = append(changes, c)
	}
	return changes
}

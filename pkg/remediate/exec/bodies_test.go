// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// watchedStore notes the names that are created, in order; fails is asked before each.
type watchedStore struct {
	evidence.Store
	created []string
	fails   func(name string) error
}

func (s *watchedStore) Create(ctx context.Context, name string, data []byte) error {
	if s.fails != nil {
		if err := s.fails(name); err != nil {
			return err
		}
	}
	err := s.Store.Create(ctx, name, data)
	if err == nil {
		s.created = append(s.created, name)
	}
	return err
}

func (w *world) watch() *watchedStore {
	store := &watchedStore{Store: w.records}
	w.Evidence.Writer.Store = store
	return store
}

func isBody(name string) bool {
	_, _, ok := evidence.ParseBodyName(name)
	return ok
}

// contents reads the bodies that a record names.
func (w *world) contents(r *evidence.Record) map[evidence.BodyOf]string {
	w.Helper()
	all := map[evidence.BodyOf]string{}
	for _, b := range r.Bodies {
		body, err := evidence.ReadBody(w.Context(), w.records, policyUID, b.Digest)
		if err != nil {
			w.Fatal(err)
		}
		all[b.Of] = string(body)
	}
	return all
}

// stepRecordOf returns the record of the plan's step.
func (w *world) stepRecordOf() *evidence.Record {
	w.Helper()
	all := w.recorded()
	i := slices.IndexFunc(all, func(r evidence.Record) bool { return r.Kind == evidence.KindStep })
	if i < 0 {
		w.Fatal("the step has no record")
	}
	return &all[i]
}

// D21 of the review of remediation: after retention the records had digests of policy and plan
// alone, and an auditor could not read what these said.
func TestAnAuditorReadsPolicyPlanAndArtifactsOfARecord(t *testing.T) {
	w := newWorld(t)
	store := w.watch()
	w.finish()
	policy, plan := w.encoded(&w.policy.Spec), w.encoded(&w.now().Spec.Plan)
	for _, r := range w.recorded() {
		want := map[evidence.BodyOf]string{evidence.BodyPolicy: policy, evidence.BodyPlan: plan}
		if r.Kind == evidence.KindStep {
			want[evidence.BodyBefore] = strings.NewReplacer(`"replicas":3`, `"replicas":7`, "shop:1", "evil:1").Replace(authorized)
			want[evidence.BodyAuthorized] = authorized
			want[evidence.BodyWritten] = authorized
		}
		if diff := cmp.Diff(want, w.contents(&r)); diff != "" {
			t.Errorf("the bodies of a %s (-want +got):\n%s", r.Kind, diff)
		}
		at := slices.Index(store.created, evidence.Name(policyUID, r.Chain.Sequence))
		for _, b := range r.Bodies {
			if stored := slices.Index(store.created, evidence.BodyName(policyUID, b.Digest)); stored < 0 || stored > at {
				t.Errorf("the body %s of record %d is stored as number %d, the record as number %d", b.Of, r.Chain.Sequence, stored, at)
			}
		}
	}
	// Authorized and written are one content, and each is stored once.
	if bodies := slices.DeleteFunc(store.created, func(name string) bool { return !isBody(name) }); len(bodies) != 4 {
		t.Errorf("the bodies are %q, want 4", bodies)
	}
	w.verify(3)
}

func (w *world) encoded(what any) string {
	w.Helper()
	raw, err := json.Marshal(what)
	if err != nil {
		w.Fatal(err)
	}
	return string(raw)
}

func TestAStepThatMakesItsTargetWritesOverNothing(t *testing.T) {
	w := toBeMade(t)
	w.finish()
	want := []evidence.BodyOf{evidence.BodyPolicy, evidence.BodyPlan, evidence.BodyAuthorized, evidence.BodyWritten}
	var got []evidence.BodyOf
	for _, b := range w.stepRecordOf().Bodies {
		got = append(got, b.Of)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bodies (-want +got):\n%s", diff)
	}
	if written := w.contents(w.stepRecordOf())[evidence.BodyWritten]; written != authorized {
		t.Errorf("written is %s", written)
	}
}

// Only the first executor read the target before the write; the intent says what it read.
func TestASecondExecutorNamesWhatTheFirstWroteOver(t *testing.T) {
	w := newWorld(t)
	w.targets.lost = on("put", errNetwork)
	w.carryUntil(v1alpha1.StepIntent)
	w.Evidence, w.Holder = w.another(), "executor-2"
	w.finish()
	if step := w.now().Status.Steps[0]; step.Result == nil || step.Result.Origin != v1alpha1.ResultRecovered {
		t.Fatalf("the step is %+v", step)
	}
	if before := w.contents(w.stepRecordOf())[evidence.BodyBefore]; !strings.Contains(before, "evil:1") {
		t.Errorf("before the write it was %q", before)
	}
}

// carryUntil carries the plan on until its step has a state.
func (w *world) carryUntil(state v1alpha1.StepState) {
	w.Helper()
	for range 20 {
		w.carry()
		if steps := w.now().Status.Steps; len(steps) > 0 && steps[0].State == state {
			return
		}
	}
	w.Fatalf("the step never is %s: %+v", state, w.now().Status.Steps)
}

func TestNothingIsWrittenWhoseBodiesAreNotStored(t *testing.T) {
	for name, test := range map[string]struct {
		put   func(*world, *watchedStore)
		wants string
	}{
		"the store does not take what is written over": {func(w *world, s *watchedStore) {
			w.granted = func() {
				s.fails = func(name string) error {
					if isBody(name) {
						return errNetwork
					}
					return nil
				}
			}
		}, errNetwork.Error()},
		"the store has something else under that name": {func(w *world, _ *watchedStore) {
			w.granted = func() {
				w.records.Put(evidence.BodyName(policyUID, evidence.Digest([]byte(authorized))), []byte(`{"spec":{}}`))
			}
		}, "digest mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.put(w, w.watch())
			var out Outcome
			for range 10 {
				out = w.carry()
				w.clock.now = later(w.clock.now, out.Until)
			}
			if len(w.targets.stored) > 0 || w.now().Status.Steps[0].Intent != nil {
				t.Errorf("stored are %v, the step is %+v", w.targets.stored, w.now().Status.Steps[0])
			}
			if !strings.Contains(out.Why, "evidence cannot be written: ") || !strings.Contains(out.Why, test.wants) {
				t.Errorf("it waits for %q", out.Why)
			}
		})
	}
}

func TestNoRecordIsWrittenWhosePlanIsNotStored(t *testing.T) {
	w := newWorld(t)
	w.records.Put(evidence.BodyName(policyUID, PlanDigest(&w.now().Spec.Plan)), []byte(`{}`))
	_, err := w.Carry(t.Context(), w.key())
	var mismatch *evidence.BodyError
	if !errors.As(err, &mismatch) || len(w.records.Names()) > 0 || w.now().Status.Phase == v1alpha1.PlanRunning {
		t.Errorf("got %v, and the records are %v", err, w.records.Names())
	}
	if c := meta.FindStatusCondition(w.now().Status.Conditions, v1alpha1.ConditionReconciling); c == nil || !strings.Contains(c.Message, "digest mismatch") {
		t.Errorf("the condition says %+v", c)
	}
}

func TestARecordNamesOnlyAPolicyThatIsStored(t *testing.T) {
	change := func(w *world) {
		w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Safety.MaxPerDay++ })
	}
	for name, test := range map[string]struct {
		before, after func(*world)
		named         []bool
	}{
		"the policy is as the plan says":       {nil, nil, []bool{true, true, true}},
		"the policy changed before any record": {change, nil, []bool{false, false, false}},
		"the policy changed after a record":    {nil, change, []bool{true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if test.before != nil {
				test.before(w)
			}
			w.ledgerStored = func() {
				if test.after != nil {
					test.after(w)
					w.Evidence = w.another()
				}
			}
			w.finish()
			var named []bool
			for _, r := range w.recorded() {
				named = append(named, r.Body(evidence.BodyPolicy) != "")
			}
			if diff := cmp.Diff(test.named, named); diff != "" {
				t.Errorf("records that name the policy (-want +got):\n%s", diff)
			}
			w.verify(len(named))
		})
	}
}

func TestNoValueThatLooksLikeASecretIsStored(t *testing.T) {
	const canary = "hunter2-canary"
	w := newWorld(t)
	body := strings.Replace(authorized, `"name":"app"`, `"env":[{"name":"DB_PASSWORD","value":"`+canary+`"}],"name":"app"`, 1)
	w.bodies["web-4"] = body
	drifted := strings.Replace(w.targets.body("web"), `"name":"app"`, `"env":[{"name":"DB_PASSWORD","value":"`+canary+`-2"}],"name":"app"`, 1)
	w.targets.objects["web"] = w.targets.parse(drifted)
	hash := w.guards.hash(t, body)
	change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
		target := &p.Spec.Plan.Targets[0]
		target.DriftedHash, target.DesiredHash, target.RevisionHash = w.guards.hash(t, drifted), hash, hash
	})
	w.changeBaseline(func(b *v1alpha1.Baseline) { b.Spec.Authorized.Hash = hash })
	w.finish()
	if diff := cmp.Diff([]string{"put web"}, w.targets.stored); diff != "" {
		t.Fatalf("writes (-want +got):\n%s", diff)
	}
	if before := w.contents(w.stepRecordOf())[evidence.BodyBefore]; !strings.Contains(before, "[redacted, ≤16 bytes]") {
		t.Errorf("before the write it was %s", before)
	}
	for _, name := range w.records.Memory.Names() {
		data, err := w.records.Read(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(canary)) {
			t.Errorf("%s holds the value: %s", name, data)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// ErrDamaged says that what a revision holds is no body.
var ErrDamaged = errors.New("the revision is damaged")

// material is what was read for one step in this run.
type material struct {
	// raw is the target as it was read; nil when it is not there.
	raw      []byte
	metadata metav1.ObjectMeta
	standard repair.Standard
	// request is what was tried, and is what is written.
	request []byte
	// baseline is the Baseline as it was read, and quarantined what was tried of it.
	baseline, quarantined *v1alpha1.Baseline
	// standby is what was read of it, and madeStandby the Deployment that this run has made.
	standby     StandbySight
	madeStandby []byte
	// assessment of the step as it was read; nil before it has ended.
	assessment *v1alpha1.EffectivenessAssessment
}

func (r *run) material(step int32) *material {
	if r.steps[step] == nil {
		r.steps[step] = &material{}
	}
	return r.steps[step]
}

func (r *run) carryTarget(ctx context.Context, effect protocol.Effect) {
	switch x := effect.(type) {
	case protocol.ReadTarget:
		target := r.read(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Target = &target })
	case protocol.LoadRevision:
		answer := r.load(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Revision = answer })
	case protocol.Try:
		write := r.try(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Tried = &write })
	case protocol.WriteTarget:
		write := r.write(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Wrote(write) })
	case protocol.FenceTarget:
		write := r.fence(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.FencedBy(write) })
	case protocol.ReturnFields:
		write := r.returnFields(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.ReturnedBy(write) })
	}
}

func (r *run) ref(step int32) Reference {
	target := r.target(step)
	return Reference{GVK: gvkOf(target), Namespace: r.plan.Namespace, Name: target.Name}
}

func (r *run) marks(step int32) repair.Marks {
	return repair.Marks{PlanUID: string(r.plan.UID), Step: step, Token: protocol.Token(r.plan, step)}
}

// read reads the target and what it is measured by.
func (r *run) read(ctx context.Context, step int32) protocol.Target {
	m := r.material(step)
	m.raw, m.metadata, m.request, m.baseline, m.quarantined = nil, metav1.ObjectMeta{}, nil, nil, nil
	raw, err := r.Targets.Get(ctx, r.ref(step))
	gone := ResultOf(err) == protocol.Gone
	if err != nil && !gone {
		return protocol.Target{Read: protocol.Unknown}
	}
	if !gone {
		if m.metadata, err = metadataOf(raw); err != nil {
			return protocol.Target{Read: protocol.Unknown}
		}
		m.raw = raw
	}
	baseline, unwanted, err := r.measure(ctx, step)
	if err != nil {
		return protocol.Target{Read: protocol.Unknown}
	}
	t := protocol.Target{
		Read: protocol.Yes, Unwanted: unwanted, Mild: r.mild(step, baseline),
		Contended: baseline != nil && baseline.Status.Contention != nil,
		Ending:    r.guards.Terminating(r.plan.Namespace) || m.metadata.DeletionTimestamp != nil,
	}
	m.baseline = baseline
	if gone {
		t.Read = protocol.No
		if r.quarantines(step) {
			r.describeBaseline(step, &t)
		}
		return t
	}
	if t = r.describe(ctx, step, t); r.quarantines(step) && t.Read == protocol.Yes {
		r.describeBaseline(step, &t)
	}
	t.Unassessed = baseline != nil && baseline.Status.Observed.Hash != t.Hash
	return t
}

// describe fills in what is read off an object that is there.
func (r *run) describe(ctx context.Context, step int32, t protocol.Target) protocol.Target {
	m, target := r.material(step), r.target(step)
	t.UID, t.ResourceVersion, t.Generation = string(m.metadata.UID), m.metadata.ResourceVersion, m.metadata.Generation
	hash, err := m.standard.Hash(m.raw, target)
	if err != nil {
		return protocol.Target{Read: protocol.Unknown}
	}
	t.Hash = hash
	if r.quarantines(step) {
		return t
	}
	t.DDEM002Hash = r.hashSpec(step, m.raw)
	if target.Action == v1alpha1.ActionRestart {
		t.RestartedFor = repair.RestartedFor(m.raw, m.standard.GVK)
	}
	t.KeepsFields = repair.KeepsFields(&m.metadata)
	t.Ready, t.NotReady = r.ready(ctx, step)
	t.Protected = r.protected(step, t.Ready)
	r.recordFoundFence(ctx, step)
	return t
}

// measure reads what the target is measured by now, and says why the plan's wish
// for it is no longer one; empty when it is.
func (r *run) measure(ctx context.Context, step int32) (baseline *v1alpha1.Baseline, unwanted string, err error) {
	m, target := r.material(step), r.target(step)
	m.standard.GVK = gvkOf(target)
	if r.guards == nil {
		if r.guards, err = r.Guards.Read(ctx, r.Client); err != nil {
			return nil, "", err
		}
	}
	if baseline, err = r.readBaseline(ctx, step); err != nil && !apierrors.IsNotFound(err) {
		return nil, "", err
	}
	if err != nil {
		return nil, "its Baseline is gone", nil //nolint:nilerr // absent is an answer
	}
	m.standard.Masks, m.standard.Metadata = baseline.Status.Masks, baseline.Status.Observed.Metadata
	m.standard.Rules = r.guards.Rules(r.plan.Namespace, target, m.metadata.Labels, &baseline.Status)
	if err := r.bodies(ctx, step, baseline); err != nil {
		return nil, "", err
	}
	return baseline, r.unwanted(baseline, target, m), nil
}

// bodies reads the authorized body where masks need it, and the desired one where
// it differs from that.
func (r *run) bodies(ctx context.Context, step int32, baseline *v1alpha1.Baseline) error {
	m, target := r.material(step), r.target(step)
	m.standard.Authorized = nil
	authorized := baseline.Spec.Authorized
	if len(m.standard.Masks) == 0 || authorized == nil {
		return nil
	}
	if authorized.Revision == target.Revision && m.standard.Desired != nil {
		m.standard.Authorized = m.standard.Desired
		return nil
	}
	body, err := r.Bodies.Body(ctx, r.plan.Namespace, authorized.Revision)
	if err != nil {
		return fmt.Errorf("reading the authorized body: %w", err)
	}
	m.standard.Authorized = body
	if target.Action != v1alpha1.ActionRollback {
		return nil
	}
	desired, err := r.Bodies.Body(ctx, r.plan.Namespace, target.Revision)
	if err != nil {
		return fmt.Errorf("reading the desired body: %w", err)
	}
	m.standard.Desired = desired
	return nil
}

// unwanted says why a target is to be left alone although the plan names it.
func (r *run) unwanted(b *v1alpha1.Baseline, target *v1alpha1.PlanTarget, m *material) string {
	authorized := b.Spec.Authorized
	if b.Spec.Target != target.BaselineTarget {
		return "its Baseline is that of another object"
	}
	if m.standard.Rules.Empty() {
		return "no active guard selects it any more"
	}
	if held := r.guards.Holds(r.plan.Namespace, b, m.standard.Rules, m.metadata.Annotations); held != "" {
		return held
	}
	switch {
	case AcceptWaits(b, target.DriftedHash):
		return b.Spec.Accept.RequestedBy + " has accepted the observed state"
	case applyWaits(b, m.metadata.Annotations):
		return "an apply of the live state is not judged yet"
	case authorized == nil:
		return "it has no authorized state any more"
	case target.Action == v1alpha1.ActionRollback && r.plan.Spec.Plan.Request == nil && (b.Status.LastReady == nil || b.Status.LastReady.Hash != target.RevisionHash):
		return "another authorized state was ready since the plan was made"
	case target.Action != v1alpha1.ActionRollback && authorized.Hash != target.RevisionHash:
		return "another state was authorized since the plan was made"
	}
	return ""
}

// applyWaits says that a user applied the live state since the assessor last looked. If guards
// trust that user, the apply authorizes the state.
func applyWaits(b *v1alpha1.Baseline, annotations map[string]string) bool {
	stamp := specguard.AppliedStamp(annotations)
	return stamp != "" && stamp != b.Status.Observed.Applied
}

// AcceptWaits says that a person asked to authorize the state with a hash, or a state that
// the assessor has not looked at yet.
func AcceptWaits(b *v1alpha1.Baseline, hash string) bool {
	return b.Spec.Accept != nil && (b.Spec.Accept.Hash == hash || b.Status.ObservedGeneration < b.Generation)
}

// load reads the body that the target is to have.
func (r *run) load(ctx context.Context, step int32) protocol.Answer {
	m, target := r.material(step), r.target(step)
	body, err := r.Bodies.Body(ctx, r.plan.Namespace, target.Revision)
	switch {
	case errors.Is(err, ErrDamaged), apierrors.IsNotFound(err):
		return protocol.No
	case err != nil:
		return protocol.Unknown
	}
	m.standard.Desired = body
	if !m.standard.Intact(target) {
		return protocol.No
	}
	return protocol.Yes
}

// try has the API server carry the very request out without storing it. Only the time of
// a creation differs: that of the intent is not known yet.
func (r *run) try(ctx context.Context, step int32) protocol.Write {
	if r.quarantines(step) {
		return r.tryQuarantine(ctx, step)
	}
	m := r.material(step)
	if m.raw == nil {
		return r.tryCreation(ctx, step)
	}
	var err error
	if m.request, err = repair.Write(m.raw, r.target(step), &m.standard, r.marks(step)); err != nil {
		return protocol.Write{Result: protocol.Refused, Message: err.Error()}
	}
	return r.sendTrial(ctx, step)
}

// sendTrial sends a dry run. What would be written is stored beside the records before the
// intent to write it is, so that each write leaves what it wrote and what it wrote over.
func (r *run) sendTrial(ctx context.Context, step int32) protocol.Write {
	write := r.send(ctx, step, true)
	if write.Result != protocol.Stored || write.Hash != r.target(step).DesiredHash {
		return write
	}
	kept, err := r.keepArtifacts(ctx, step)
	if err != nil {
		return protocol.Write{Result: protocol.Lost, Message: "evidence cannot be written: " + err.Error()}
	}
	write.Artifacts = kept
	return write
}

// tryCreation tries a creation with the owners that live now.
func (r *run) tryCreation(ctx context.Context, step int32) protocol.Write {
	m := r.material(step)
	if err := r.readOwners(ctx, m); err != nil {
		return protocol.Write{Result: protocol.Lost, Message: err.Error()}
	}
	if err := r.makeCreation(step, protocol.NotAfter(r.Time.Now())); err != nil {
		return protocol.Write{Result: protocol.Refused, Message: err.Error()}
	}
	write := r.sendTrial(ctx, step)
	write.Lacks = repair.Lacks(&m.standard)
	return write
}

// write sends what was tried. It carries uid and resourceVersion of the intent,
// because it was made from the very version that the intent names. An executor that takes
// the plan over derives the time of a creation from the stored intent, so the creation
// carries that time, or an earlier one.
func (r *run) write(ctx context.Context, step int32) protocol.Write {
	if m := r.material(step); m.raw == nil && m.request != nil && !r.quarantines(step) {
		if err := r.makeCreation(step, r.state().LastSecond(step)); err != nil {
			return protocol.Write{Result: protocol.Refused, Message: err.Error()}
		}
	}
	return r.send(ctx, step, false)
}

// makeCreation makes the request for a target that is not there.
func (r *run) makeCreation(step int32, notAfter time.Time) (err error) {
	m := r.material(step)
	m.request, err = repair.Creation(r.plan.Namespace, r.target(step), &m.standard, r.marks(step), notAfter)
	return err
}

func (r *run) send(ctx context.Context, step int32, dryRun bool) protocol.Write {
	if r.quarantines(step) {
		return r.sendQuarantine(ctx, step, dryRun)
	}
	m := r.material(step)
	if m.request == nil {
		return protocol.Write{Result: protocol.Refused, Message: "there was no earlier attempt"}
	}
	put := r.Targets.Put
	if m.raw == nil {
		put = r.Targets.Post
	}
	return r.answer(step, func() ([]byte, error) { return put(ctx, r.ref(step), m.request, dryRun) })
}

// answer tells what came of a request.
func (r *run) answer(step int32, request func() ([]byte, error)) protocol.Write {
	raw, err := request()
	if err != nil {
		return protocol.Write{Result: ResultOf(err), Message: err.Error()}
	}
	m := r.material(step)
	metadata, err := metadataOf(raw)
	if err != nil {
		return protocol.Write{Result: protocol.Lost, Message: err.Error()}
	}
	hash, err := m.standard.Hash(raw, r.target(step))
	if err != nil {
		return protocol.Write{Result: protocol.Lost, Message: err.Error()}
	}
	m.metadata.UID = metadata.UID
	return protocol.Write{
		Result: protocol.Stored, ResourceVersion: metadata.ResourceVersion, Hash: hash, DDEM002Hash: r.hashSpec(step, raw),
		UID: string(metadata.UID), Generation: metadata.Generation,
	}
}

// fence moves the target's resourceVersion, and leaves a record of it, since it
// is a write like any other.
func (r *run) fence(ctx context.Context, step int32) protocol.Write {
	if r.quarantines(step) {
		return r.fenceBaseline(ctx, step)
	}
	m := r.material(step)
	was := m.metadata.ResourceVersion
	body, err := repair.Fence(m.raw, m.standard.GVK, r.marks(step), was)
	if err != nil {
		return protocol.Write{Result: protocol.Refused, Message: err.Error()}
	}
	write := r.answer(step, func() ([]byte, error) { return r.Targets.Put(ctx, r.ref(step), body, false) })
	if write.Result != protocol.Stored {
		return write
	}
	if write.ResourceVersion == was { // nothing moved, so nothing is fenced
		return protocol.Write{Result: protocol.Lost, Message: "the fence had no effect"}
	}
	if err := r.recordFence(ctx, step, write, evidence.OriginAPIResponse); err != nil {
		return protocol.Write{Result: protocol.Lost, Message: err.Error()}
	}
	return write
}

func metadataOf(raw []byte) (metav1.ObjectMeta, error) {
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return metav1.ObjectMeta{}, fmt.Errorf("reading the target's metadata: %w", err)
	}
	// What a dry run would make has no resourceVersion.
	if object.Metadata.UID == "" {
		return metav1.ObjectMeta{}, errors.New("reading the target's metadata: it has no uid")
	}
	return object.Metadata, nil
}

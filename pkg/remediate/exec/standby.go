// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/bluegreen"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Standbys reads and writes the standby of a step.
type Standbys interface {
	// Read reads the standby, its target and what proxies serve. What could not be read makes all of
	// it unknown.
	Read(ctx context.Context, live client.Client, of *StandbyOf) StandbySight
	// Carry carries an act out that writes. made is the Deployment that the API server has stored.
	Carry(ctx context.Context, live client.Client, of *StandbyOf, act bluegreen.Act, seen *StandbySight) (made []byte, acted bluegreen.Acted)
}

// StandbyOf says which standby of which step.
type StandbyOf struct {
	Plan *v1alpha1.RemediationPlan
	Step int32
	// Body is the authorized body of the target, and Replicas what the repaired target has; both are
	// absent once the step is about to write.
	Body     []byte
	Replicas int32
	// Metadata is that of the live target.
	Metadata metav1.ObjectMeta
	// NotAfter is the last second in which the API server admits a creation.
	NotAfter time.Time
}

// Target is what the standby stands in for.
func (o *StandbyOf) Target() *v1alpha1.PlanTarget { return &o.Plan.Spec.Plan.Targets[o.Step] }

// Stored is the standby as the status tells of it; nil before the first one.
func (o *StandbyOf) Stored() *v1alpha1.StepStandby { return o.Plan.Status.Steps[o.Step].Standby }

// ID is the value of the label of the standby that the status tells of.
func (o *StandbyOf) ID() string { return protocol.StandbyID(o.Plan, o.Step, o.Stored().Number) }

// StandbySight is what was read of a standby.
type StandbySight struct {
	bluegreen.Seen
	// ABRelease as it was read; nil when there is none. Writes are bound to its version.
	ABRelease *v1alpha1.ABRelease
	// Deployment as it was read; nil when there is none.
	Deployment []byte
}

// carryStandby carries out an act about the standby of a step.
func (r *run) carryStandby(ctx context.Context, x protocol.CarryStandby) {
	m, of := r.material(x.Step), r.standbyOf(x.Step)
	switch {
	case r.Standbys == nil && of.Stored() == nil:
		r.learn(x.Step, func(f *protocol.StepFacts) { f.SawStandby(bluegreen.Seen{Known: true, Obstacle: noMesh}) })
		return
	case r.Standbys == nil:
		r.learn(x.Step, func(f *protocol.StepFacts) { f.SawStandby(bluegreen.Seen{Why: noMesh}) })
		return
	}
	switch x.Act {
	case bluegreen.Read:
		m.standby = r.Standbys.Read(ctx, r.Client, of)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.SawStandby(m.standby.Seen) })
		return
	case bluegreen.Note:
		r.noteStandby(ctx, x.Step)
		return
	case bluegreen.MakeRelease, bluegreen.MakeStandby, bluegreen.Switch, bluegreen.Return, bluegreen.Remove:
	}
	made, acted := r.Standbys.Carry(ctx, r.Client, of, x.Act, &m.standby)
	if made != nil {
		m.madeStandby = made
	}
	r.learn(x.Step, func(f *protocol.StepFacts) { f.ActedOnStandby(acted) })
}

// standsBy says that a standby answers the requests of a target while the step writes it.
func (r *run) standsBy(step int32) bool { return protocol.StandsBy(&r.plan.Spec.Plan, step) }

func (r *run) standbyOf(step int32) *StandbyOf {
	m := r.material(step)
	of := &StandbyOf{Plan: r.plan, Step: step, Body: m.standard.Desired, Metadata: m.metadata, Replicas: replicasOf(m.request)}
	if stored := of.Stored(); stored != nil {
		of.NotAfter = protocol.NotAfter(stored.StartTime.Time)
	}
	return of
}

// replicasOf are those of a Deployment; 1 where it has none, as the API server has it.
func replicasOf(deployment []byte) int32 {
	var object struct {
		Spec struct {
			Replicas *int32 `json:"replicas"`
		} `json:"spec"`
	}
	if json.Unmarshal(deployment, &object) != nil || object.Spec.Replicas == nil {
		return 1
	}
	return max(0, *object.Spec.Replicas)
}

// noteStandby leaves a record of the Deployment. If this run has not heard the answer to the
// creation, the record says that the Deployment was found.
func (r *run) noteStandby(ctx context.Context, step int32) {
	m := r.material(step)
	raw, origin := m.madeStandby, evidence.OriginAPIResponse
	if raw == nil {
		raw, origin = m.standby.Deployment, evidence.OriginRecovered
	}
	stored, err := r.recordStandby(ctx, step, raw, origin)
	if err != nil {
		r.learn(step, func(f *protocol.StepFacts) { f.ActedOnStandby(bluegreen.Acted{Lost: true}) })
		return
	}
	r.learn(step, func(f *protocol.StepFacts) { f.StandbyEvidence = stored })
}

func (r *run) recordStandby(ctx context.Context, index int32, raw []byte, origin evidence.Origin) (*v1alpha1.StepEvidence, error) {
	step, m := &r.plan.Status.Steps[index], r.material(index)
	metadata, err := metadataOf(raw)
	if err != nil {
		return nil, err
	}
	target := r.target(index)
	hash, err := specguard.GuardedHash(raw, gvkOf(target), m.standard.Rules)
	if err != nil {
		return nil, fmt.Errorf("hashing the standby: %w", err)
	}
	record := r.common(evidence.KindStandby, step.Standby.StartTime.Time)
	record.Occurrence = step.Standby.Number
	record.Subject = evidence.Subject{
		APIVersion: target.APIVersion, Kind: target.Kind, Namespace: r.plan.Namespace, Name: metadata.Name, UID: string(metadata.UID), Hash: string(hash),
	}
	record.Step = &evidence.Step{Index: index, Action: string(target.Action)}
	record.Result = evidence.Result{ResourceVersion: metadata.ResourceVersion, Hash: string(hash), Origin: origin, At: step.Standby.StartTime.Time}
	at, err := r.tell(ctx, record)
	if err != nil {
		return nil, err
	}
	return &v1alpha1.StepEvidence{Sequence: at.Sequence, Digest: at.Digest}, nil
}

// StandbyAccess returns the permissions that a plan needs for a standby, beside those for the write of
// the target: the executor moves requests and makes a Deployment in the name of the requester.
func StandbyAccess(namespace string) []Access {
	releases := schema.GroupVersionResource{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "abreleases"}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	return []Access{
		{Resource: deployments, Namespace: namespace, Write: "create"},
		{Resource: releases, Namespace: namespace, Write: "create"},
		{Resource: releases, Namespace: namespace, Write: "update"},
		{Resource: releases, Namespace: namespace, Write: "delete"},
	}
}

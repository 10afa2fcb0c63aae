// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// previewUID stands where the uid of a plan would: there is no plan yet, and a dry
// run stores nothing of it.
const previewUID = "00000000-0000-0000-0000-000000000000"

// Outcome is the result of the dry run of one write.
type Outcome string

const (
	// Converges says that the write leads to the authorized state.
	Converges Outcome = "Converges"
	// Diverges says that the write would lead to another state.
	Diverges Outcome = "WouldNotConverge"
	// Refused says that the API server, admission or the plan refuses the write.
	Refused Outcome = "Refused"
	// Forbidden says that the person who asks may not write the object.
	Forbidden Outcome = "Forbidden"
	// Moved says that the object has changed since it was looked at.
	Moved Outcome = "TargetMoved"
	// Unknown says that the write could not be tried.
	Unknown Outcome = "Unknown"
)

// Step is one write, as far as a dry run tells.
type Step struct {
	// Object as kubectl names it: deployment.apps/web.
	Object    string                     `json:"object"`
	Action    v1alpha1.RemediationAction `json:"action"`
	Severity  v1alpha1.SeverityLevel     `json:"severity"`
	Score     int32                      `json:"score"`
	FirstSeen time.Time                  `json:"firstSeen"`
	Actors    []string                   `json:"actors,omitempty"`
	Paths     []string                   `json:"paths,omitempty"`
	Outcome   Outcome                    `json:"outcome"`
	// Message says who refused, and why, in the API server's words; or what an object
	// that is made again lacks.
	Message string `json:"message,omitempty"`
	// FieldManagers own the fields after the write that the write changes.
	FieldManagers []string `json:"fieldManagers,omitempty"`
	// Changes that the API server would store; values that look secret are redacted.
	Changes []actions.Change `json:"changes,omitempty"`
}

// tryer tries the writes of plans that do not exist.
type tryer struct {
	Cluster
	source planning.Source
	now    time.Time
}

func (t *tryer) plan(ctx context.Context, p *planner.Plan) (Plan, error) {
	out := Plan{Namespace: p.Namespace, Name: p.Name, Steps: []Step{}}
	if p.ScheduledTime != nil {
		out.ScheduledFor = timeOrNil(p.ScheduledTime.Time)
	}
	plan := &v1alpha1.RemediationPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: previewUID},
		Spec:       v1alpha1.RemediationPlanSpec{Plan: p.PlannedRemediation},
	}
	for i := range p.Targets {
		target := &p.Targets[i]
		s := Step{
			Object: actions.NameTarget(&target.BaselineTarget), Action: target.Action, Severity: target.Severity.Level, Score: target.Severity.Score,
			FirstSeen: target.FirstSeenTime.Time, Actors: target.Actors, Paths: target.Paths,
		}
		if err := t.try(ctx, plan, int32(i), &s); err != nil { //nolint:gosec // at most ten
			s.Outcome, s.Message = refusalOf(err)
		}
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		out.Steps = append(out.Steps, s)
	}
	out.Planned = *plan
	return out, nil
}

// oneLine is for texts of others that go over several lines.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// refusalOf tells what the API server refuses from what nobody knows.
func refusalOf(err error) (Outcome, string) {
	words := oneLine(err.Error())
	status, ok := errors.AsType[*apierrors.StatusError](err)
	switch {
	case !ok || status.ErrStatus.Code >= 500:
		return Unknown, words
	case apierrors.IsForbidden(err) && status.ErrStatus.Details != nil && len(status.ErrStatus.Details.Causes) == 0:
		return Forbidden, words
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return Moved, words
	}
	return Refused, words
}

// try does what the executor does up to its own dry run, with the same request.
func (t *tryer) try(ctx context.Context, plan *v1alpha1.RemediationPlan, step int32, s *Step) error {
	target := &plan.Spec.Plan.Targets[step]
	ref := exec.Reference{GVK: canon.ParseGVK(target.APIVersion, target.Kind), Namespace: plan.Namespace, Name: target.Name}
	raw, err := t.Targets.Get(ctx, ref)
	switch {
	case target.UID == "" && actions.IsAbsent(err):
		raw = nil // it is to be made again
	case err != nil:
		return err
	}
	standard, err := t.standard(ctx, plan.Namespace, target, raw)
	if err != nil {
		return err
	}
	if target.Action != v1alpha1.ActionRestart && !standard.Intact(target) { // a restart takes nothing from it
		s.Outcome, s.Message = Refused, "revision "+target.Revision+" is not the target of the plan"
		return nil
	}
	marks := repair.Marks{PlanUID: previewUID, Step: step, Token: protocol.Token(plan, step)}
	stored, err := t.send(ctx, ref, raw, target, standard, marks, s)
	if err != nil || stored == nil {
		return err
	}
	hash, err := standard.Hash(stored, target)
	if err != nil {
		return err
	}
	s.Outcome = Converges
	if raw == nil {
		s.Message = repair.Lacks(standard)
	}
	if hash != target.DesiredHash {
		s.Outcome, s.Message = Diverges, fmt.Sprintf("it would be %s, and should be %s", actions.ShortenHash(hash), actions.ShortenHash(target.DesiredHash))
	}
	if s.FieldManagers, err = t.managersAfter(ctx, plan.Namespace, target, stored); err != nil {
		return err
	}
	s.Changes, err = changesBetween(raw, stored, ref.GVK)
	return err
}

// managersAfter names the field managers that the executor gives the fields of a write back
// to. It is empty when the revision knows of none.
func (t *tryer) managersAfter(ctx context.Context, namespace string, target *v1alpha1.PlanTarget, stored []byte) ([]string, error) {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(stored, &object); err != nil {
		return nil, fmt.Errorf("reading %s: %w", target.Name, err)
	}
	var revision v1alpha1.BaselineRevision
	if err := t.Get(ctx, client.ObjectKey{Namespace: namespace, Name: target.Revision}, &revision); err != nil {
		return nil, err
	}
	owners, err := kube.DecodeFieldManagers(&revision)
	if err != nil {
		return nil, err
	}
	back, err := repair.ReturnFields(&object.ObjectMeta, owners)
	if err != nil || back == nil {
		return nil, err
	}
	return back.To, nil
}

// send makes the request and sends it as a dry run.
func (t *tryer) send(ctx context.Context, ref exec.Reference, raw []byte, target *v1alpha1.PlanTarget, standard *repair.Standard, marks repair.Marks, s *Step) ([]byte, error) {
	if raw == nil {
		body, err := repair.Creation(ref.Namespace, target, standard, marks, protocol.NotAfter(t.now))
		if err != nil {
			return nil, err
		}
		return t.Targets.Post(ctx, ref, body, true)
	}
	hash, err := standard.Hash(raw, target)
	if err != nil {
		return nil, err
	}
	if hash != target.DriftedHash {
		s.Outcome, s.Message = Moved, fmt.Sprintf("it is %s now, and was %s", actions.ShortenHash(hash), actions.ShortenHash(target.DriftedHash))
		return nil, nil
	}
	body, err := repair.Write(raw, target, standard, marks)
	if err != nil {
		return nil, err
	}
	return t.Targets.Put(ctx, ref, body, true)
}

// standard is what a target is measured by, read as the executor reads it.
func (t *tryer) standard(ctx context.Context, namespace string, target *v1alpha1.PlanTarget, raw []byte) (*repair.Standard, error) {
	world, err := t.source.World(ctx, t.now)
	if err != nil {
		return nil, err
	}
	baseline := &v1alpha1.Baseline{}
	if err := t.Get(ctx, client.ObjectKey{Namespace: namespace, Name: target.BaselineName}, baseline); err != nil {
		return nil, err
	}
	gvk := canon.ParseGVK(target.APIVersion, target.Kind)
	query := specguard.Query{
		Namespace: namespace, Name: target.Name, NamespaceLabels: world.Guards.Namespaces[namespace].Labels, GVK: gvk, Kept: &baseline.Status, Now: t.now,
	}
	if raw != nil {
		var metadata metav1.PartialObjectMetadata
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return nil, fmt.Errorf("reading %s: %w", target.Name, err)
		}
		query.Labels = append(query.Labels, metadata.Labels)
	}
	s := &repair.Standard{GVK: gvk, Rules: world.Guards.Set.Rules(query), Masks: baseline.Status.Masks, Metadata: baseline.Status.Observed.Metadata}
	if raw == nil {
		reader := exec.OwnerReader{Client: t, Mapper: t.Mapper, Reader: "you"}
		if s.Owners, err = reader.Read(ctx, namespace, s.Metadata); err != nil {
			return nil, err
		}
	}
	if s.Desired, err = t.source.Body(ctx, namespace, target.Revision); err != nil {
		return nil, err
	}
	if authorized := baseline.Spec.Authorized; authorized != nil && len(s.Masks) > 0 {
		if s.Authorized, err = t.source.Body(ctx, namespace, authorized.Revision); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// changesBetween is what the write changes of what is hashed; for an object that
// is made, the object as a whole.
func changesBetween(before, after []byte, gvk canon.GVK) ([]actions.Change, error) {
	if before == nil {
		return []actions.Change{{Operation: string(diff.Added), After: "(made again)"}}, nil
	}
	was, err := canon.Parse(before, gvk)
	if err != nil {
		return nil, err
	}
	defer was.Release()
	is, err := canon.Parse(after, gvk)
	if err != nil {
		return nil, err
	}
	defer is.Release()
	return actions.ReportChanges(diff.Compare(was, is)), nil
}

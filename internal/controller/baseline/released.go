// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// readReleased reads what the run of a release may have left in the observed version; nil unless the
// version may be of a run. All of it is read live, since it decides on what is authorized.
func (r *Reconciler) readReleased(ctx context.Context, s *subject, state *specguard.State, look observed) (*specguard.Released, error) {
	uid := r.releaseMark(s, state, look)
	if uid == "" {
		return nil, nil
	}
	if isAutoscaler(s) {
		return r.readHeld(ctx, s, state, look, uid)
	}
	mark, err := r.readMark(ctx, s, &work.Mark{UID: uid, Target: s.key.Name})
	if err != nil {
		return nil, err
	}
	last := mark.Last()
	if last == nil || mark.Release.Spec.Rollout == nil || mark.Release.Spec.Rollout.RequestedBy == "" {
		return readEnd(s, state), nil
	}
	if mark.Release, err = r.keepRelease(ctx, s, mark, last); err != nil {
		return nil, err
	}
	mark.Release = clone.WithControl(mark.Release, last.Spec.Variation)
	var from *unstructured.Unstructured
	if work.HasStart(last, mark.Release) {
		if from, err = r.readStart(ctx, s, mark.Release, last); err != nil {
			return nil, err
		}
	}
	return released(s, mark, last, from), nil
}

// readEnd returns what the end of a run may have left in a clone: no replicas of the state that a run has left. That
// end needs neither the rollout nor the release, either of which a user may have removed. It returns nil unless a run
// has left the authorized state.
func readEnd(s *subject, state *specguard.State) *specguard.Released {
	if state.Authorized == nil || state.Authorized.Release == nil {
		return nil
	}
	end := &v1alpha1.ReleaseWork{Spec: v1alpha1.ReleaseWorkSpec{Verb: v1alpha1.WorkScale, Replicas: new(int32(0))}}
	return &specguard.Released{
		Requester: specguard.Identity{User: state.Authorized.By}, Release: *state.Authorized.Release, Returns: true,
		Bodies: bodiesLeft(s, end, nil, nil),
	}
}

// keepRelease returns the release with the change that the run was measured with, where the next change waits in
// the spec.
func (r *Reconciler) keepRelease(ctx context.Context, s *subject, mark *work.Mark, last *v1alpha1.ReleaseWork) (*v1alpha1.ABRelease, error) {
	if mark.Release.Spec.Rollout.Supersede != v1alpha1.SupersedeQueue {
		return mark.Release, nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(string(v1alpha1.VariationDeployment)))
	name := types.NamespacedName{Namespace: s.key.Namespace, Name: v1alpha1.CloneName(mark.Release.Name, last.Spec.Variation)}
	switch err := r.Live.Get(ctx, name, live); {
	case apierrors.IsNotFound(err):
		return mark.Release, nil
	case err != nil:
		return nil, fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	return work.Keep(mark.Release, last.Spec.Variation, live, mark.Works), nil
}

// releaseMark is the uid of the work that a version carries as a label; empty unless the executor may have
// written the version.
func (r *Reconciler) releaseMark(s *subject, state *specguard.State, look observed) types.UID {
	return types.UID(markOf(s, state, look, r.Config.ReleaseExecutor, v1alpha1.LabelReleaseWork))
}

// markOf is the value of a label of a Deployment or an autoscaler; empty unless the version also has the executor's
// stamp, and is not what was judged as in sync last.
func markOf(s *subject, state *specguard.State, look observed, executor, label string) string {
	present, is := look.observation.(specguard.Present)
	if !is || executor == "" || present.Writer != executor {
		return ""
	}
	if present.Labels[evidence.LabelPlan] != "" { // a work takes the marks of a plan off, so the plan wrote last
		return ""
	}
	if !isDeployment(s) && !isAutoscaler(s) {
		return ""
	}
	if last := &state.Observed; last.FullHash == string(look.object.FullHash) && last.UID == present.UID && state.FindingsTotal == 0 {
		return ""
	}
	return present.Labels[label]
}

func isDeployment(s *subject) bool {
	return s.key.Group == "apps" && s.key.Kind == string(v1alpha1.VariationDeployment)
}

// readMark fills a mark with the works of the namespace, and with the release of the one that has its uid.
func (r *Reconciler) readMark(ctx context.Context, s *subject, mark *work.Mark) (*work.Mark, error) {
	var works v1alpha1.ReleaseWorkList
	if err := r.Live.List(ctx, &works, inNamespace(s.key.Namespace)); err != nil {
		return nil, fmt.Errorf("listing ReleaseWorks of namespace %s: %w", s.key.Namespace, err)
	}
	mark.Works = works.Items
	named := mark.Find()
	if named == nil {
		return mark, nil
	}
	release := &v1alpha1.ABRelease{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: named.Spec.ReleaseName}, release)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("reading ABRelease %s/%s: %w", s.key.Namespace, named.Spec.ReleaseName, err)
	default:
		mark.Release = release
	}
	return mark, nil
}

// readStart reads the authorized body of the stable variation's Deployment that a work starts from;
// nil if no kept state is that body. A deployment by a trusted writer may have moved the authorized
// body since, so former states count as well.
func (r *Reconciler) readStart(ctx context.Context, s *subject, release *v1alpha1.ABRelease, of *v1alpha1.ReleaseWork) (*unstructured.Unstructured, error) {
	name := work.BaselineName(release)
	b := &v1alpha1.Baseline{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: specguard.BaselineName(s.resource.Plural, s.key.Group, name)}, b)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading the Baseline of Deployment %s/%s: %w", s.key.Namespace, name, err)
	case err != nil, b.Spec.Authorized == nil, b.Status.RetirementTime != nil, b.Status.Oversized != nil:
		return nil, nil //nolint:nilerr // without a Baseline no state is authorized
	}
	for number := b.Spec.Authorized.Number; number > max(0, b.Spec.Authorized.Number-maxRevisions); number-- {
		content, err := r.readKept(ctx, b, specguard.RevisionName(b.Name, number))
		if err != nil {
			return nil, err
		}
		if content == nil {
			continue
		}
		body, err := work.ReadBody(content, s.key.Namespace, name)
		if err == nil && work.StartsFrom(of, body) {
			return body, nil
		}
	}
	return nil, nil
}

// released is what a work may leave, as the rules ask for it.
func released(s *subject, mark *work.Mark, of *v1alpha1.ReleaseWork, from *unstructured.Unstructured) *specguard.Released {
	release, in := mark.Release, mark.Release.Spec.Rollout
	return &specguard.Released{
		Requester: specguard.Identity{User: in.RequestedBy, Groups: in.RequestedByGroups},
		Release:   v1alpha1.AuthorizedRelease{Name: release.Name, Run: of.Spec.Run, WorkName: of.Name},
		Creates:   work.HasStart(of, release),
		Pending:   from == nil && work.HasStart(of, release) && mark.IsOn(),
		Bodies:    bodiesLeft(s, of, release, from),
	}
}

// bodiesLeft returns what computes the bodies that a work may leave. release and from may be nil.
func bodiesLeft(s *subject, of *v1alpha1.ReleaseWork, release *v1alpha1.ABRelease, from *unstructured.Unstructured) func([]byte) [][]byte {
	return func(authorized []byte) (bodies [][]byte) {
		var own *unstructured.Unstructured
		if authorized != nil {
			own, _ = work.ReadBody(authorized, s.key.Namespace, s.key.Name) // a body that cannot be read leaves nothing
		}
		for _, left := range work.Left(of, release, from, own) {
			if body, err := work.WriteBody(left); err == nil {
				bodies = append(bodies, body)
			}
		}
		return bodies
	}
}

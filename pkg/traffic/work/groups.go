// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Groups are the live Deployments of a release whose runs divide replicas.
type Groups struct {
	// Deployments by variation; nil of a group that does not exist.
	Deployments map[v1alpha1.VariationName]*unstructured.Unstructured
	// Tools of GitOps that apply a group, by variation; empty if none does.
	Tools map[v1alpha1.VariationName]string
	// Replicas of both groups together when the run started, as an earlier work of the run has stored them;
	// nil if none has.
	Replicas *int32
}

// ScalesGroup says whether a work scales a group of a release.
func ScalesGroup(work *v1alpha1.ReleaseWork, release *v1alpha1.ABRelease) bool {
	return release != nil && release.Spec.HasGroups() && work.Spec.Verb == v1alpha1.WorkScale
}

func scalesGroup(f *Facts) bool { return ScalesGroup(f.Work, f.Release) }

// givesGroupBack says whether a work gives a group what the end of a run that was rolled back gives it: all
// replicas to the active group, and then none to the canary.
func givesGroupBack(work *v1alpha1.ReleaseWork, release *v1alpha1.ABRelease) bool {
	spec := &work.Spec
	in := release.Status.Rollout
	if spec.Replicas == nil || in == nil || in.Run == nil || in.Run.Number != spec.Run || in.Run.Division == nil || rollout.RunState(in.Run.State) != rollout.RolledBack {
		return false
	}
	if spec.Variation == in.Run.From.Variation {
		return *spec.Replicas == *in.Run.Division.Replicas
	}
	return spec.Variation == in.Run.To.Variation && *spec.Replicas == 0
}

// GroupReplicasOf returns what the earlier works of the same run have stored as the replicas of both groups; nil
// if none has.
func GroupReplicasOf(w *v1alpha1.ReleaseWork, works []v1alpha1.ReleaseWork) *int32 {
	for i := range works {
		other := &works[i]
		if other.Spec.ReleaseUID == w.Spec.ReleaseUID && other.Spec.Run == w.Spec.Run && IsBefore(other, w) && other.Status.GroupReplicas != nil {
			return other.Status.GroupReplicas
		}
	}
	return nil
}

// replicasOf both groups together when the run started. The first work of a run reads them, so that the
// discovery server cannot ask for more than there was.
func replicasOf(f *Facts) int32 {
	switch {
	case f.Work.Status.GroupReplicas != nil:
		return *f.Work.Status.GroupReplicas
	case f.Groups.Replicas != nil:
		return *f.Groups.Replicas
	}
	var sum int32
	for _, group := range f.Groups.Deployments {
		if group != nil {
			sum += clone.Replicas(group)
		}
	}
	return sum
}

// groupTarget returns the Deployment that a work scales; nil if it does not exist.
func groupTarget(f *Facts) *unstructured.Unstructured {
	if f.Groups == nil {
		return nil
	}
	return f.Groups.Deployments[f.Work.Spec.Variation]
}

// objectToGroups is about both groups: a run that could not go on does not begin.
func objectToGroups(f *Facts) *objection {
	for i := range f.Release.Spec.Variations {
		v := &f.Release.Spec.Variations[i]
		if v.Group == nil {
			return object(v1alpha1.WorkInvalidSpec, "spec.variations: %s is no group: name its Deployment", v.Name)
		}
		group := f.Groups.Deployments[v.Name]
		switch {
		case group == nil:
			return object(v1alpha1.WorkGroupGone, "the Deployment %s, which is the group of %s, does not exist: create it", v.Group.Name, v.Name)
		case ownsReplicas(group, f.Groups.Tools[v.Name]):
			return object(v1alpha1.WorkGitOpsOwned, "%s applies spec.replicas of the Deployment %s and would revert the change: leave spec.replicas out of its manifest, and use server-side apply",
				f.Groups.Tools[v.Name], v.Group.Name)
		}
		for _, a := range f.Autoscalers {
			if Scales(a, &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: v.Group.Name}) {
				return object(v1alpha1.WorkGroupAutoscaled, "the HorizontalPodAutoscaler %s scales the Deployment %s, and the run divides its replicas: delete the autoscaler, or use the model Router", a.GetName(), v.Group.Name)
			}
		}
	}
	return nil
}

// objectToGroup is about the group that the work scales.
func objectToGroup(f *Facts) *objection {
	spec := &f.Work.Spec
	group, of := groupTarget(f), f.Release.Spec.GroupOf(spec.Variation)
	switch {
	case of == nil:
		return object(v1alpha1.WorkInvalidSpec, "spec.variations: %s is no group", spec.Variation)
	case group == nil:
		return object(v1alpha1.WorkGroupGone, "the Deployment %s, which is the group of %s, does not exist: create it", of.Name, spec.Variation)
	case group.GetDeletionTimestamp() != nil:
		return &objection{v1alpha1.WorkTerminating, fmt.Sprintf("the Deployment %s is being deleted", of.Name), true}
	case givesBack(f) || *spec.Replicas == 0:
		return nil
	}
	if hash, err := clone.TemplateHash(group); err != nil || hash != spec.ExpectedHash {
		return object(v1alpha1.WorkGroupChanged, "the pod template of the Deployment %s is not the one that the work was decided on", of.Name)
	}
	return nil
}

// objectToCapacity keeps both groups together at the replicas that they had before the run, and their ready pods
// as well.
func objectToCapacity(f *Facts) *objection {
	spec := &f.Work.Spec
	in := f.Release.Status.Rollout.Run.Division
	total, wants := replicasOf(f), *spec.Replicas
	switch {
	case in == nil || in.Replicas == nil || *in.Replicas != total:
		return object(v1alpha1.WorkGroupChanged, "both groups have %d replicas together, another number than run %d has begun with: scale them back, or ask for Rollback", total, spec.Run)
	case wants > total:
		return object(v1alpha1.WorkTooManyReplicas, "the work asks for %d replicas, and both groups had %d together", wants, total)
	case wants >= clone.Replicas(groupTarget(f)):
		return nil
	}
	ready := min(readyIn(groupTarget(f)), wants)
	for variation, group := range f.Groups.Deployments {
		if variation != spec.Variation && group != nil {
			ready += readyIn(group)
		}
	}
	if ready < total {
		return &objection{v1alpha1.WorkCapacityShort, fmt.Sprintf("with %d replicas of %s both groups have %d ready pods, and wanted are %d: see why pods are not ready", wants, spec.Variation, ready, total), true}
	}
	return nil
}

// readyIn counts the ready pods of a Deployment. Those of a generation that its controller has not seen are not
// more than the replicas that it asks for.
func readyIn(group *unstructured.Unstructured) int32 {
	ready, _, err := unstructured.NestedInt64(group.Object, "status", "readyReplicas")
	if err != nil {
		return 0
	}
	return min(int32(max(ready, 0)), clone.Replicas(group)) //nolint:gosec // bounded by the replicas
}

// scaledGroup returns the group with the replicas of the work; nil if it has them.
func scaledGroup(f *Facts) (*unstructured.Unstructured, error) {
	group := groupTarget(f)
	if clone.Replicas(group) == *f.Work.Spec.Replicas {
		return nil, nil //nolint:nilnil // nothing to write is no error
	}
	out := group.DeepCopy()
	if err := unstructured.SetNestedField(out.Object, int64(*f.Work.Spec.Replicas), "spec", "replicas"); err != nil {
		return nil, fmt.Errorf("setting spec.replicas of Deployment %s: %w", group.GetName(), err)
	}
	return marked(f, out), nil
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/remediate/bluegreen"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/standby"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

var deployment = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}

// Standbys reads and writes standbys: the Deployment by way of Targets, and the ABRelease.
type Standbys struct {
	Targets exec.Targets
}

// Read implements exec.Standbys.
func (s Standbys) Read(ctx context.Context, live client.Client, of *exec.StandbyOf) exec.StandbySight {
	sight, err := s.read(ctx, live, of)
	if err != nil {
		return exec.StandbySight{Seen: bluegreen.Seen{Why: err.Error()}}
	}
	sight.Known = true
	return sight
}

func (s Standbys) read(ctx context.Context, live client.Client, of *exec.StandbyOf) (sight exec.StandbySight, err error) {
	if sight.Target, _, err = s.readWorkload(ctx, of.Plan.Namespace, of.Target().Name); err != nil {
		return sight, err
	}
	stored := of.Stored()
	if stored != nil && stored.Phase != v1alpha1.StandbyRemoved {
		if err = s.readOwn(ctx, live, of, &sight); err != nil {
			return sight, err
		}
		if stored.Phase != v1alpha1.StandbyPreparing {
			return sight, nil // what stands against a standby counts until requests move
		}
	}
	sight.Replicas = of.Replicas
	return sight, readObstacle(ctx, live, of, &sight)
}

// readOwn reads the ABRelease and the Deployment of the standby.
func (s Standbys) readOwn(ctx context.Context, live client.Client, of *exec.StandbyOf, sight *exec.StandbySight) error {
	name := of.Stored().Name
	release := &v1alpha1.ABRelease{}
	err := live.Get(ctx, types.NamespacedName{Namespace: of.Plan.Namespace, Name: name}, release)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading ABRelease %s: %w", name, err)
	default:
		standing := standby.StandingOf(release)
		sight.Release = bluegreen.Release{
			Exists: true, Foreign: release.Labels[v1alpha1.LabelStandby] != of.ID(), Ending: release.DeletionTimestamp != nil, ToStandby: standing.ToStandby,
			InForce: standing.InForce, Why: standing.Why, NoProxies: standing.NoProxies, InFlight: standing.InFlight,
		}
		sight.ABRelease = release
	}
	workload, raw, err := s.readWorkload(ctx, of.Plan.Namespace, name)
	if err != nil || raw == nil {
		return err
	}
	made, err := decodeDeployment(raw)
	if err != nil {
		return err
	}
	owner := metav1.GetControllerOf(made)
	workload.Foreign = made.GetLabels()[v1alpha1.LabelStandby] != of.ID() || sight.ABRelease != nil && (owner == nil || owner.UID != sight.ABRelease.UID)
	sight.Standby, sight.Deployment = workload, raw
	return nil
}

// readWorkload reads a Deployment; raw is nil when there is none.
func (s Standbys) readWorkload(ctx context.Context, namespace, name string) (w bluegreen.Workload, raw []byte, err error) {
	raw, err = s.Targets.Get(ctx, exec.Reference{GVK: deployment, Namespace: namespace, Name: name})
	switch {
	case exec.ResultOf(err) == protocol.Gone:
		return w, nil, nil
	case err != nil:
		return w, nil, fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	object, err := decodeDeployment(raw)
	if err != nil {
		return w, nil, err
	}
	state, why := readiness.Judge(raw, deployment, readiness.Knowledge{})
	ready, _, _ := unstructured.NestedInt64(object.Object, "status", "readyReplicas")
	w = bluegreen.Workload{Exists: true, Ready: state == readiness.Ready, Why: why + describeQuota(object), ReadyReplicas: int32(min(max(ready, 0), 1<<31-1))} //nolint:gosec // bounded in this line
	return w, raw, nil
}

// describeQuota says, as the end of a sentence, why pods of a Deployment are refused: by a
// ResourceQuota, for example.
func describeQuota(object *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, is := c.(map[string]any); is && c["type"] == "ReplicaFailure" && c["status"] == "True" {
			return fmt.Sprintf("; %v", c["message"])
		}
	}
	return ""
}

// readObstacle fills in what stands against a standby, and the Service whose requests it would answer.
func readObstacle(ctx context.Context, live client.Reader, of *exec.StandbyOf, sight *exec.StandbySight) error {
	target, namespace := of.Target(), of.Plan.Namespace
	if canon.ParseGVK(target.APIVersion, target.Kind) != deployment {
		sight.Obstacle = "NotADeployment: only a Deployment gets a standby"
		return nil
	}
	scaled, err := isScaled(ctx, live, namespace, target.Name)
	switch {
	case apierrors.IsForbidden(err):
		sight.Obstacle = "NotAllowed: the executor may make no standby in namespace " + namespace + ": bind the ClusterRole plumbline-executor-standbys there"
		return nil
	case err != nil:
		return err
	case scaled:
		sight.Obstacle = "HasAutoscaler: a HorizontalPodAutoscaler scales Deployment " + target.Name + ", and would take its pods away while a standby has the requests"
		return nil
	}
	in, err := readMesh(ctx, live, namespace)
	if err != nil {
		return err
	}
	var releases v1alpha1.ABReleaseList
	if err := live.List(ctx, &releases, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing ABReleases of namespace %s: %w", namespace, err)
	}
	others := releases.Items[:0]
	for i := range releases.Items {
		if own := sight.ABRelease != nil && releases.Items[i].UID == sight.ABRelease.UID; !own {
			others = append(others, releases.Items[i])
		}
	}
	service, obstacle := standby.FindService(in, others, traffic.Workload{Namespace: namespace, Kind: deployment.Kind, Name: target.Name})
	if service == nil {
		sight.Obstacle = obstacle.String()
		return nil
	}
	sight.ServiceName = service.Name
	return demandUnselected(of, service.Name, service.Spec.Selector, sight)
}

// demandUnselected has labels that leave the pods of the standby in a selector stand against it.
func demandUnselected(of *exec.StandbyOf, service string, selector map[string]string, sight *exec.StandbySight) error {
	s, err := bodyOf(of, "", "", of.Replicas)
	if err == nil {
		err = s.DemandUnselected(service, selector)
	}
	if refused := (&clone.RefusedError{}); errors.As(err, &refused) {
		sight.Obstacle = "PodLabels: " + refused.Error()
		return nil
	}
	return err
}

// isScaled says that an autoscaler scales a Deployment.
func isScaled(ctx context.Context, live client.Reader, namespace, name string) (bool, error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscalerList"})
	if err := live.List(ctx, all, client.InNamespace(namespace)); err != nil { // forbidden where the executor may make no standby
		return false, fmt.Errorf("listing HorizontalPodAutoscalers of namespace %s: %w", namespace, err)
	}
	for i := range all.Items {
		if work.Scales(&all.Items[i], &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: name}) {
			return true, nil
		}
	}
	return false, nil
}

// bodyOf is what the body of a standby is made of.
func bodyOf(of *exec.StandbyOf, name, id string, replicas int32) (*clone.Standby, error) {
	target, err := work.ReadBody(of.Body, of.Plan.Namespace, of.Target().Name)
	if err != nil {
		return nil, fmt.Errorf("making the standby: %w", err)
	}
	target.SetLabels(of.Metadata.Labels)
	target.SetAnnotations(of.Metadata.Annotations)
	s := &clone.Standby{Name: name, ID: id, Replicas: replicas, Target: target}
	if template := of.Plan.Spec.Plan.Standby; template != nil {
		s.PodLabels = template.PodLabels
	}
	return s, nil
}

func decodeDeployment(raw []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("decoding a Deployment: %w", err)
	}
	return object, nil
}

// Carry implements exec.Standbys.
func (s Standbys) Carry(ctx context.Context, live client.Client, of *exec.StandbyOf, act bluegreen.Act, seen *exec.StandbySight) (made []byte, acted bluegreen.Acted) {
	var err error
	switch act {
	case bluegreen.MakeRelease:
		err = live.Create(ctx, releaseOf(of), client.FieldOwner(exec.FieldManager))
	case bluegreen.MakeStandby:
		made, err = s.make(ctx, of, seen.ABRelease)
	case bluegreen.Switch:
		err = giveAll(ctx, live, seen.ABRelease, v1alpha1.VariationStandby)
	case bluegreen.Return:
		err = giveAll(ctx, live, seen.ABRelease, v1alpha1.VariationTarget)
	case bluegreen.Remove:
		err = live.Delete(ctx, seen.ABRelease, client.Preconditions{UID: &seen.ABRelease.UID, ResourceVersion: &seen.ABRelease.ResourceVersion},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
	case bluegreen.Read, bluegreen.Note:
	}
	return made, actedOf(err)
}

// actedOf says what an error of a write means. A conflict, or an object that is gone, is read again.
func actedOf(err error) bluegreen.Acted {
	if refused := (&clone.RefusedError{}); errors.As(err, &refused) {
		return bluegreen.Acted{Refused: refused.Error()}
	}
	switch exec.ResultOf(err) {
	case protocol.Stored, protocol.Conflicted, protocol.Gone:
		return bluegreen.Acted{}
	case protocol.Forbidden, protocol.Refused:
		return bluegreen.Acted{Refused: strings.TrimSpace("the API server refused a request about the standby: " + err.Error())}
	case protocol.Lost:
	}
	return bluegreen.Acted{Lost: true}
}

func releaseOf(of *exec.StandbyOf) *v1alpha1.ABRelease {
	owner := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RemediationPlan", Name: of.Plan.Name, UID: of.Plan.UID}
	r := standby.Release(of.Plan.Namespace, of.Target().Name, of.Stored(), of.ID(), owner)
	r.Annotations = admitUntil(nil, of.NotAfter)
	return r
}

// make makes the Deployment, which belongs to the ABRelease.
func (s Standbys) make(ctx context.Context, of *exec.StandbyOf, release *v1alpha1.ABRelease) ([]byte, error) {
	stored := of.Stored()
	template, err := bodyOf(of, stored.Name, of.ID(), stored.Replicas)
	if err != nil {
		return nil, err
	}
	object, err := clone.StandbyOf(template)
	if err != nil {
		return nil, fmt.Errorf("making the standby: %w", err)
	}
	object.SetOwnerReferences([]metav1.OwnerReference{clone.OwnerOf(release)})
	object.SetAnnotations(admitUntil(object.GetAnnotations(), of.NotAfter))
	body, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding the standby: %w", err)
	}
	ref := exec.Reference{GVK: deployment, Namespace: of.Plan.Namespace, Name: stored.Name}
	return s.Targets.Post(ctx, ref, body, false) //nolint:wrapcheck // the result is read off the error
}

// giveAll writes where all requests go, over the version that was read.
func giveAll(ctx context.Context, live client.Client, release *v1alpha1.ABRelease, to v1alpha1.VariationName) error {
	next := release.DeepCopy()
	standby.GiveAll(next, to)
	return live.Update(ctx, next, client.FieldOwner(exec.FieldManager)) //nolint:wrapcheck // the result is read off the error
}

// admitUntil adds the last second in which the API server admits a creation.
func admitUntil(annotations map[string]string, last time.Time) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[repair.AnnotationNotAfter] = last.UTC().Format(time.RFC3339)
	return annotations
}

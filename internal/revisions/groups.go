// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Pods counts those of a workload that have restarted.
type Pods interface {
	CountRestarted(ctx context.Context, workload traffic.Workload, since time.Time) (int, error)
}

// GroupReader reads the groups of releases, live at each look.
type GroupReader struct {
	// Live reads from the API server, and not from a cache.
	Live client.Reader
	Pods Pods
}

// ReadGroup returns a group with its ready pods, and how many pods have restarted since a time; none have if the
// time is zero. The Arm is zero if the workload is not there.
func (r *GroupReader) ReadGroup(ctx context.Context, w traffic.Workload, since time.Time) (rollout.Arm, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: w.Kind})
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name}, object)
	if apierrors.IsNotFound(err) {
		return rollout.Arm{}, nil
	}
	if err != nil {
		return rollout.Arm{}, fmt.Errorf("reading %s %s/%s: %w", w.Kind, w.Namespace, w.Name, err)
	}
	arm, err := armOf(object)
	if err != nil {
		return rollout.Arm{}, err
	}
	ready, _, _ := unstructured.NestedInt64(object.Object, "status", "readyReplicas")
	arm.Ready, arm.Revision.Label = int(min(max(ready, 0), int64(arm.Replicas))), numberOf(object)
	if since.IsZero() {
		return arm, nil
	}
	if arm.Restarted, err = r.Pods.CountRestarted(ctx, w, since); err != nil {
		return rollout.Arm{}, fmt.Errorf("counting the pods of %s %s/%s that have restarted: %w", w.Kind, w.Namespace, w.Name, err)
	}
	return arm, nil
}

// numberOf returns what identifies the revision of a Deployment without pods: its controller numbers the pod
// templates that people give it, and a new version of Kubernetes with other defaults gives no number. It is empty
// until the controller has seen the template.
func numberOf(object *unstructured.Unstructured) string {
	number := object.GetAnnotations()["deployment.kubernetes.io/revision"]
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if number == "" || observed < object.GetGeneration() {
		return ""
	}
	uid := string(object.GetUID())
	return uid[:min(len(uid), 36)] + "." + number[:min(len(number), 20)]
}

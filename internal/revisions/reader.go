// SPDX-License-Identifier: Apache-2.0

// Package revisions reads which revision a workload has. It is read live when pods with another
// revision label appear, and remembered in between: to watch all workloads would cost each replica
// memory for what seldom changes.
package revisions

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Reader reads revisions. Its zero value with a client is ready.
type Reader struct {
	// Live reads from the API server, and not from a cache.
	Live client.Reader

	mu   sync.Mutex
	kept map[traffic.Workload]kept
}

// kept is what was read when pods had these labels.
type kept struct {
	labels []string
	arm    rollout.Arm
}

// Read returns the revision of a workload whose pods have the given revision labels, how many pods it
// has, and how many of these are of the revision. The Arm is zero if the workload is not there.
// While pods of several revisions are there, each call reads live.
func (r *Reader) Read(ctx context.Context, w traffic.Workload, labels []string) (rollout.Arm, error) {
	r.mu.Lock()
	known, is := r.kept[w]
	r.mu.Unlock()
	if is && known.arm.Revision.Hash != "" && (len(labels) == 0 || len(labels) == 1 && slices.Equal(known.labels, labels)) {
		return known.arm, nil
	}
	arm, err := r.readLive(ctx, w)
	if err != nil {
		return rollout.Arm{}, err
	}
	labelRevision(&arm, labels)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = map[traffic.Workload]kept{}
	}
	r.kept[w] = kept{labels, arm}
	if arm.Updated != arm.Targets || arm.Revision.Hash == "" {
		delete(r.kept, w) // it changes
	}
	return arm, nil
}

// labelRevision gives the revision the label of the pods, once pods of that revision alone are there.
func labelRevision(arm *rollout.Arm, labels []string) {
	if arm.Revision.Hash != "" && len(labels) == 1 && arm.Updated == arm.Targets {
		arm.Revision.Label = labels[0]
	}
}

func (r *Reader) readLive(ctx context.Context, w traffic.Workload) (rollout.Arm, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: w.Kind})
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name}, object)
	if apierrors.IsNotFound(err) {
		return rollout.Arm{}, nil
	}
	if err != nil {
		return rollout.Arm{}, fmt.Errorf("reading %s %s/%s: %w", w.Kind, w.Namespace, w.Name, err)
	}
	return armOf(object)
}

// armOf reads a workload. Pods of a generation that its controller has not seen do not count.
func armOf(object *unstructured.Unstructured) (rollout.Arm, error) {
	var arm rollout.Arm
	template, is, err := unstructured.NestedMap(object.Object, "spec", "template")
	if err != nil || !is {
		return arm, fmt.Errorf("reading spec.template of %s %s: it is missing", object.GetKind(), object.GetName())
	}
	hash, err := clone.TemplateHash(object)
	if err != nil {
		return arm, fmt.Errorf("finding the revision of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	arm.Revision = rollout.Revision{Hash: hash, Image: imageOf(template)}
	arm.Images = imagesOf(template)
	arm.Labels, _, _ = unstructured.NestedStringMap(template, "metadata", "labels")
	replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	arm.Replicas = int(replicas)
	status := func(name string) int {
		n, _, _ := unstructured.NestedInt64(object.Object, "status", name)
		return int(n)
	}
	arm.Targets, arm.Updated = status("replicas"), status("updatedReplicas")
	if object.GetKind() == "DaemonSet" {
		arm.Targets, arm.Updated = status("desiredNumberScheduled"), status("updatedNumberScheduled")
	}
	if int64(status("observedGeneration")) < object.GetGeneration() {
		arm.Updated = 0
		arm.Targets = max(arm.Targets, 1)
	}
	return arm, nil
}

// imagesOf all containers that a template has; nil if one of them is not what a container is.
func imagesOf(template map[string]any) (images []string) {
	for _, field := range []string{"containers", "initContainers"} {
		containers, _, _ := unstructured.NestedSlice(template, "spec", field)
		for i := range containers {
			container, is := containers[i].(map[string]any)
			name, _, _ := unstructured.NestedString(container, "name")
			image, _, _ := unstructured.NestedString(container, "image")
			if !is || name == "" || image == "" {
				return nil
			}
			images = append(images, rollout.ImageOf(name, image))
		}
	}
	return images
}

// imageOf the first container.
func imageOf(template map[string]any) string {
	containers, _, _ := unstructured.NestedSlice(template, "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	first, _ := containers[0].(map[string]any)
	image, _, _ := unstructured.NestedString(first, "image")
	return image
}

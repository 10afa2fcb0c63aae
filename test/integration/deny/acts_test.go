// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// act is one request about a Deployment.
type act func(ctx context.Context, c client.Client, d *appsv1.Deployment) error

func patch(kind types.PatchType, body string, options ...client.PatchOption) act {
	return func(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
		return c.Patch(ctx, d.DeepCopy(), client.RawPatch(kind, []byte(body)), options...)
	}
}

func merge(body string) act     { return patch(types.MergePatchType, body) }
func strategic(body string) act { return patch(types.StrategicMergePatchType, body) }
func jsonPatch(body string) act { return patch(types.JSONPatchType, body) }

const newImage = `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop:2"}]}}}}`

var setImage = strategic(newImage)

func dryRun(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	return patch(types.StrategicMergePatchType, newImage, client.DryRunAll)(ctx, c, d)
}

// apply is a server-side apply of another image.
func apply(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	body := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"` + d.Name + `"},"spec":{"selector":{"matchLabels":{"app":"` + d.Name + `"}},
		"template":{"metadata":{"labels":{"app":"` + d.Name + `"}},"spec":{"containers":[{"name":"app","image":"shop:2"}]}}}}`
	return patch(types.ApplyPatchType, body, client.ForceOwnership, client.FieldOwner("tina"))(ctx, c, d)
}

// put replaces the object as a whole, without what others put on it.
func put(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	next := deployment(d.Namespace, d.Name)
	next.Spec.Template.Spec.Containers[0].Image = "shop:2"
	return c.Update(ctx, next)
}

func remove(options ...client.DeleteOption) act {
	return func(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
		return c.Delete(ctx, d.DeepCopy(), options...)
	}
}

func removeAll(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	return c.DeleteAllOf(ctx, &appsv1.Deployment{}, client.InNamespace(d.Namespace), client.MatchingLabels{"app": d.Name})
}

func createAgain(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	return c.Create(ctx, deployment(d.Namespace, d.Name))
}

func createGenerated(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	next := deployment(d.Namespace, d.Name)
	next.Name, next.GenerateName = "", d.Name+"-"
	return c.Create(ctx, next)
}

func createOwned(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	next := deployment(d.Namespace, d.Name+"-owned")
	next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: d.UID, Controller: new(true)}}
	return c.Create(ctx, next)
}

func scaleTo(replicas int32) act {
	return func(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		return c.SubResource("scale").Update(ctx, d.DeepCopy(), client.WithSubResourceBody(scale))
	}
}

func patchStatus(body string) act {
	return func(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
		return c.Status().Patch(ctx, d.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)))
	}
}

// all makes several requests; the first error ends it.
func all(acts ...act) act {
	return func(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
		for _, a := range acts {
			if err := a(ctx, c, d); err != nil {
				return err
			}
		}
		return nil
	}
}

// withReason is a merge patch of the spec with a break-glass reason beside it.
func withReason(reason, spec string) act {
	return merge(`{"metadata":{"annotations":{"` + v1alpha1.AnnotationBreakGlassReason + `":` + reason + `}},"spec":` + spec + `}`)
}

// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/internal/gitops"
)

// gitOps reads what the GitOps tools of the cluster are told to ignore.
func (r *reader) gitOps(ctx context.Context) {
	out := &r.snapshot.GitOps
	if r.snapshot.ServesArgoCD() {
		out.Applications = r.applications(ctx)
		out.Settings = r.argoCDSettings(ctx)
	}
	out.HelmRelease = r.fluxObject(ctx, gitops.HelmRelease)
	out.Kustomization = r.fluxObject(ctx, gitops.Kustomization)
	out.Metadata = map[string]doctor.Read[gitops.Metadata]{}
	for _, o := range r.snapshot.FilledObjects() {
		if o.Namespace != "" { // the others are read already
			out.Metadata[o.ID()] = r.metadata(ctx, &o)
		}
	}
}

// preferred is the newest version of a resource that the server has.
func (r *reader) preferred(group, resource string) schema.GroupVersionKind {
	var out schema.GroupVersionKind
	for _, served := range r.snapshot.Resources.Value {
		if served.Group == group && served.Name == resource &&
			(out.Version == "" || version.CompareKubeAwareVersionStrings(served.Version, out.Version) > 0) {
			out = schema.GroupVersionKind{Group: group, Version: served.Version, Kind: served.Kind}
		}
	}
	return out
}

func (r *reader) applications(ctx context.Context) doctor.Read[[]gitops.Application] {
	const right = "list applications.argoproj.io"
	var out []gitops.Application
	var decoding error
	list := &unstructured.UnstructuredList{}
	gvk := r.preferred("argoproj.io", "applications")
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			raw, err := list.Items[i].MarshalJSON()
			if err != nil {
				decoding = err
				continue
			}
			application, err := gitops.DecodeApplication(raw)
			if err != nil {
				decoding = err
				continue
			}
			out = append(out, application)
		}
	})
	if err == nil {
		err = decoding // the one that was not understood may be ours
	}
	return result(out, right, err)
}

func (r *reader) argoCDSettings(ctx context.Context) doctor.Read[map[string]map[string]string] {
	out := map[string]map[string]string{}
	list := &corev1.ConfigMapList{}
	err := r.client.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: gitops.SettingsName})
	for i := range list.Items {
		out[list.Items[i].Namespace] = list.Items[i].Data
	}
	return result(out, "list configmaps named "+gitops.SettingsName, err)
}

// fluxObject is the one that our objects name as theirs.
func (r *reader) fluxObject(ctx context.Context, kind gitops.FluxKind) doctor.Read[gitops.FluxObject] {
	group, resource := doctor.FluxResource(kind)
	namespace, name, marked := r.snapshot.FluxOwner(kind)
	gvk := r.preferred(group, resource)
	if !marked || gvk.Empty() {
		return doctor.Gone[gitops.FluxObject]()
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	var raw []byte
	if err == nil {
		raw, err = object.MarshalJSON()
	}
	var out gitops.FluxObject
	if err == nil {
		out, err = gitops.DecodeFlux(kind, raw)
	}
	return result(out, "get "+resource+"."+group+" in namespace "+namespace, err)
}

func (r *reader) metadata(ctx context.Context, o *gitops.Object) doctor.Read[gitops.Metadata] {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind})
	err := r.client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, object)
	resource := map[string]string{"Secret": "secrets", "Lease": "leases"}[o.Kind]
	return result(gitops.Metadata{Labels: object.Labels, Annotations: object.Annotations}, "get "+resource+" in namespace "+o.Namespace, err)
}

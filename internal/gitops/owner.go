// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"cmp"
	"slices"
	"strings"
)

// ApplicationKind is the kind of the objects of Argo CD that apply others.
const ApplicationKind = "Application"

// The field managers of the tools.
var (
	argoCDManagers = []string{"argocd-controller", "argocd-application-controller"}
	fluxManagers   = []string{"kustomize-controller", "helm-controller"}
)

// Owner is the object of a GitOps tool that applies an object of the cluster, and undoes the changes of others.
type Owner struct {
	// Tool is [ArgoCD] or [Flux].
	Tool string
	// Kind, Namespace and Name of the owner. The Kind and the Name are empty if a field manager alone names the tool, and
	// the Namespace of an Application is empty if the mark has none.
	Kind      string
	Namespace string
	Name      string
}

// String returns the owner for people.
func (o Owner) String() string {
	switch {
	case o.Name == "":
		return o.Tool
	case o.Namespace == "":
		return o.Tool + " (" + o.Kind + " " + o.Name + ")"
	}
	return o.Tool + " (" + o.Kind + " " + o.Namespace + "/" + o.Name + ")"
}

// FindOwner returns the owner of an object by the marks of the tools, or else by the field managers of the object.
func FindOwner(labels, annotations map[string]string, managers []string) (Owner, bool) {
	mark := func(key string) string { return cmp.Or(annotations[key], labels[key]) }
	if name, _, _ := strings.Cut(cmp.Or(mark(ArgoCDTracking), mark(ArgoCDInstance)), ":"); name != "" {
		if namespace, rest, found := strings.Cut(name, "_"); found { // no name of Kubernetes has an underscore
			return Owner{ArgoCD, ApplicationKind, namespace, rest}, true
		}
		return Owner{Tool: ArgoCD, Kind: ApplicationKind, Name: name}, true
	}
	for group, kind := range map[string]FluxKind{FluxKustomize: Kustomization, FluxHelm: HelmRelease} {
		if name := mark(group + "/name"); name != "" {
			return Owner{Flux, string(kind), mark(group + "/namespace"), name}, true
		}
	}
	for tool, known := range map[string][]string{ArgoCD: argoCDManagers, Flux: fluxManagers} {
		if slices.ContainsFunc(managers, func(m string) bool { return slices.Contains(known, m) }) {
			return Owner{Tool: tool}, true
		}
	}
	return Owner{}, false
}

// PasteRule returns the YAML for the spec of an owner that has its tool ignore the fields of an object. Flux has no
// expressions, so its rule names each field.
func (o Owner) PasteRule(object *Object) string {
	switch {
	case o.Tool == ArgoCD:
		return PasteArgoCD([]Gap{{object, []string{object.Parent}}}, true)
	case o.Kind == string(HelmRelease):
		return PasteFlux(HelmRelease, []Gap{{object, object.Fields}})
	default:
		return PasteFlux(Kustomization, []Gap{{object, object.Fields}})
	}
}

// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/adopt"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// pageSize is how many objects are asked for at once, as kubectl does.
const pageSize = 500

// unread is a part of the cluster that could not be read. Its consequences are unknown
// and not assumed.
type unread struct {
	What string `json:"what"`
	Why  string `json:"why"`
	// Then names the gap in the report.
	Then string `json:"then"`
}

// adoption is the report of adopt.
type adoption struct {
	adopt.Report
	Unread []unread `json:"unread"`
}

// surveyor reads the facts of a survey, and goes on where a right is missing.
type surveyor struct {
	*invocation.Cluster
	draft    adopt.Draft
	progress func(format string, args ...any)
	missing  []unread
}

func (a *app) survey(ctx context.Context, c *invocation.Cluster, draft adopt.Draft, since time.Duration) (*adoption, error) {
	r := &surveyor{Cluster: c, draft: draft, progress: func(string, ...any) {}}
	if printers.IsTerminal(a.ErrOut) {
		r.progress = func(format string, args ...any) { fmt.Fprintf(a.ErrOut, "\r\x1b[K"+format, args...) }
		defer r.progress("")
	}
	question := adopt.Question{Draft: draft, Now: a.Now(), Since: since}
	var err error
	if question.Installation, err = r.installation(ctx); err != nil {
		return nil, err
	}
	if question.NamespaceLabels, err = r.namespaceLabels(ctx); err != nil {
		return nil, err
	}
	if question.Autoscalers, err = r.autoscalers(ctx); err != nil {
		return nil, err
	}
	survey, err := adopt.NewSurvey(question)
	if err != nil {
		return nil, err
	}
	for _, resource := range specguard.ListResources(&draft.Spec.GuardSpec) {
		if err := r.objects(ctx, resource.GuardedResource, survey); err != nil {
			return nil, err
		}
	}
	accounts, err := r.accounts(ctx, survey.Candidates())
	if err != nil {
		return nil, err
	}
	report, err := survey.Report(accounts)
	if err != nil {
		return nil, err
	}
	return &adoption{Report: report, Unread: append([]unread{}, r.missing...)}, nil
}

// lack notes a gap in the report because of a missing right. Any
// other error ends the command.
func (r *surveyor) lack(err error, what, then string) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	r.missing = append(r.missing, unread{What: what, Why: invocation.Message(err), Then: then})
	return nil
}

// objects lists one kind in pages and hands each object on.
func (r *surveyor) objects(ctx context.Context, resource v1alpha1.GuardedResource, survey *adopt.Survey) error {
	kind := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
	mapping, err := r.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("%s names a kind that the server does not have: %s %s", r.draft, resource.APIVersion, resource.Kind)
	}
	if err != nil {
		return err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return fmt.Errorf("%s names %s, which are not namespaced", r.draft, mapping.Resource.GroupResource())
	}
	name := mapping.Resource.GroupResource().String()
	read := 0
	err = r.metadata(ctx, kind, r.draft.Namespace, func(object *metav1.PartialObjectMetadata) {
		survey.Add(canon.GVK(kind), &object.ObjectMeta)
		if read++; read%pageSize == 0 {
			r.progress("Reading %s: %d", name, read)
		}
	})
	if err != nil {
		return r.lack(err, name+r.where(), "they are not in this report")
	}
	return nil
}

func (r *surveyor) where() string {
	if r.draft.Namespace == "" {
		return " in all namespaces"
	}
	return " in namespace " + r.draft.Namespace
}

// metadata lists metadata alone, page by page. Where the server has forgotten
// the version of the first page it goes on with the present objects.
func (r *surveyor) metadata(ctx context.Context, kind schema.GroupVersionKind, namespace string, each func(*metav1.PartialObjectMetadata)) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return r.pages(ctx, list, namespace, func() {
		for i := range list.Items {
			each(&list.Items[i])
		}
	})
}

func (r *surveyor) pages(ctx context.Context, list client.ObjectList, namespace string, page func()) error {
	options := &client.ListOptions{Namespace: namespace, Limit: pageSize}
	for {
		err := r.List(ctx, list, options)
		if next, ok := continueAnew(err); ok && next != options.Continue {
			options.Continue = next
			continue
		}
		if err != nil {
			return err
		}
		page()
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
		list.SetContinue("")
	}
}

// continueAnew is the token that the server gives in place of an expired one.
func continueAnew(err error) (string, bool) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsResourceExpired(err) {
		return "", false
	}
	return status.ErrStatus.Continue, status.ErrStatus.Continue != ""
}

// namespaceLabels are read where a selector asks for them; without them the
// report cannot show the objects of such a guard.
func (r *surveyor) namespaceLabels(ctx context.Context) (map[string]map[string]string, error) {
	if r.draft.Spec.NamespaceSelector == nil {
		return nil, nil //nolint:nilnil // a guard without a selector asks for no labels
	}
	labels := map[string]map[string]string{}
	err := r.metadata(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", func(object *metav1.PartialObjectMetadata) {
		labels[object.Name] = object.Labels
	})
	if err != nil {
		return nil, fmt.Errorf("reading namespaces for the namespaceSelector: %w", err)
	}
	return labels, nil
}

// accounts looks for each service account by name. A read that is refused
// leaves it unknown.
func (r *surveyor) accounts(ctx context.Context, wanted []v1alpha1.ServiceAccountReference) (adopt.Accounts, error) {
	known := adopt.Accounts{}
	refused := map[string]bool{}
	for _, a := range wanted {
		account := &metav1.PartialObjectMetadata{}
		account.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"})
		err := r.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Name}, account)
		switch {
		case err == nil:
			known[a] = adopt.Exists
		case actions.IsAbsent(err):
			known[a] = adopt.Absent
		case refused[a.Namespace] && apierrors.IsForbidden(err): // said once
		default:
			refused[a.Namespace] = true
			if err := r.lack(err, "serviceaccounts in namespace "+a.Namespace, "no service account of it is proposed as a trusted writer"); err != nil {
				return nil, err
			}
		}
	}
	return known, nil
}

// autoscalerSource is a kind of autoscaler and where it names its target.
type autoscalerSource struct {
	kind   adopt.AutoscalerKind
	gvk    schema.GroupVersionKind
	target []string
	// defaultKind of the target is for a target without a kind.
	defaultKind schema.GroupKind
}

var autoscalerSources = []autoscalerSource{
	{adopt.HorizontalPodAutoscaler, schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, []string{"spec", "scaleTargetRef"}, schema.GroupKind{}},
	{adopt.ScaledObject, schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}, []string{"spec", "scaleTargetRef"}, schema.GroupKind{Group: "apps", Kind: "Deployment"}},
	{adopt.VerticalPodAutoscaler, schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}, []string{"spec", "targetRef"}, schema.GroupKind{}},
}

// autoscalers reads those that the cluster has the kinds for.
func (r *surveyor) autoscalers(ctx context.Context) ([]adopt.Autoscaler, error) {
	var found []adopt.Autoscaler
	for _, source := range autoscalerSources {
		mapping, err := r.Mapper.RESTMapping(source.gvk.GroupKind(), source.gvk.Version)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(source.gvk.GroupVersion().WithKind(source.gvk.Kind + "List"))
		err = r.pages(ctx, list, r.draft.Namespace, func() {
			for i := range list.Items {
				if a, ok := source.read(&list.Items[i]); ok {
					found = append(found, a)
				}
			}
		})
		if err != nil {
			if err := r.lack(err, mapping.Resource.GroupResource().String()+r.where(), "fields that they own are not known, and they are not proposed as expected writers"); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

func (s autoscalerSource) read(object *unstructured.Unstructured) (adopt.Autoscaler, bool) {
	text := func(field string) string {
		value, _, _ := unstructured.NestedString(object.Object, slices.Concat(s.target, []string{field})...)
		return value
	}
	target := schema.FromAPIVersionAndKind(text("apiVersion"), text("kind")).GroupKind()
	if target.Kind == "" {
		target = s.defaultKind
	}
	if target.Kind == "" || text("name") == "" {
		return adopt.Autoscaler{}, false
	}
	return adopt.Autoscaler{
		Kind: s.kind, Namespace: object.GetNamespace(), Name: object.GetName(),
		Target: adopt.GroupKind(target), TargetName: text("name"),
	}, true
}

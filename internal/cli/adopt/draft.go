// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/json"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/adopt"
	"github.com/plumbline-dev/plumbline/internal/cli/documents"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// draftOptions say which guard adopt begins with.
type draftOptions struct {
	file              string
	kinds             []string
	categories        []string
	name              string
	allNamespaces     bool
	namespaceSelector string
}

// defaultGuardName is that of a new guard.
const defaultGuardName = "workloads"

// defaultKinds are those that the chart registers unless it is told otherwise.
var defaultKinds = []v1alpha1.GuardedResource{
	{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "apps/v1", Kind: "StatefulSet"},
	{APIVersion: "apps/v1", Kind: "DaemonSet"}, {APIVersion: "batch/v1", Kind: "CronJob"},
}

func (o *draftOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "A file with the SpecGuard or ClusterSpecGuard to begin with; - for standard input.")
	flags.StringSliceVar(&o.kinds, "kind", nil, "Kinds of a new guard, e.g. deployment,statefulset. Left out: Deployments, StatefulSets, DaemonSets and CronJobs.")
	flags.StringSliceVar(&o.categories, "category", nil, "Categories of kinds of a new guard: "+strings.Join(categoryNames(), ", ")+".")
	flags.StringVar(&o.name, "name", defaultGuardName, "Name of a new guard.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Propose a ClusterSpecGuard for all namespaces.")
	flags.StringVar(&o.namespaceSelector, "namespace-selector", "", "Propose a ClusterSpecGuard for the namespaces with these labels.")
	invocation.MustMarkFilename(cmd, "filename", "yaml", "yml", "json")
}

func (o *draftOptions) validate(cmd *cobra.Command, args []string) error {
	fresh := len(o.kinds)+len(o.categories) > 0 || cmd.Flags().Changed("name") || o.allNamespaces || o.namespaceSelector != ""
	switch {
	case len(args) > 0 && o.file != "":
		return invocation.UsageErrorf(cmd, "a guard by name and -f exclude each other")
	case fresh && (len(args) > 0 || o.file != ""):
		return invocation.UsageErrorf(cmd, "--kind, --category, --name, -A and --namespace-selector describe a new guard, and exclude a given one")
	case o.allNamespaces && o.namespaceSelector != "":
		return invocation.UsageErrorf(cmd, "-A and --namespace-selector exclude each other")
	}
	return nil
}

func (a *app) draft(cmd *cobra.Command, c *invocation.Cluster, args []string, o draftOptions) (adopt.Draft, error) {
	switch {
	case o.file != "":
		return a.draftFromFile(cmd.Context(), c, o.file)
	case len(args) > 0:
		return draftFromCluster(c, cmd, args)
	default:
		return newDraft(c, cmd, o)
	}
}

// categoryNames lists the names of all categories.
func categoryNames() []string {
	var names []string
	for _, c := range specguard.Categories() {
		names = append(names, string(c.Name))
	}
	return names
}

func newDraft(c *invocation.Cluster, cmd *cobra.Command, o draftOptions) (adopt.Draft, error) {
	draft := adopt.Draft{Kind: adopt.SpecGuard, Namespace: c.Namespace, Name: o.name}
	if o.allNamespaces || o.namespaceSelector != "" {
		draft.Kind, draft.Namespace = adopt.ClusterSpecGuard, ""
	}
	if o.namespaceSelector != "" {
		selector, err := metav1.ParseToLabelSelector(o.namespaceSelector)
		if err != nil {
			return adopt.Draft{}, invocation.UsageErrorf(cmd, "unable to parse selector %q: %v", o.namespaceSelector, err)
		}
		draft.Spec.NamespaceSelector = selector
	}
	draft.Spec.Resources = slices.Clone(defaultKinds)
	if len(o.kinds)+len(o.categories) > 0 {
		draft.Spec.Resources = nil
	}
	for _, category := range o.categories {
		if !slices.Contains(categoryNames(), category) {
			return adopt.Draft{}, invocation.UsageErrorf(cmd, "unknown category %q: name one of %s", category, strings.Join(categoryNames(), ", "))
		}
		draft.Spec.Categories = append(draft.Spec.Categories, v1alpha1.ResourceCategory(category))
	}
	for _, kind := range o.kinds {
		mapping, err := guarded.ResolveType(c, kind)
		if err != nil {
			return adopt.Draft{}, err
		}
		resource := v1alpha1.GuardedResource{APIVersion: mapping.GroupVersionKind.GroupVersion().String(), Kind: mapping.GroupVersionKind.Kind}
		if !slices.Contains(draft.Spec.Resources, resource) {
			draft.Spec.Resources = append(draft.Spec.Resources, resource)
		}
	}
	var err error
	draft.Existing, err = guardExists(cmd.Context(), c, draft)
	if err != nil || !draft.Existing {
		return draft, err
	}
	return adopt.Draft{}, fmt.Errorf("%s exists already: look at it with 'adopt %s %s', or choose another --name", draft, strings.ToLower(string(draft.Kind)), draft.Name)
}

func guardExists(ctx context.Context, c *invocation.Cluster, d adopt.Draft) (bool, error) {
	var guard client.Object = &v1alpha1.ClusterSpecGuard{}
	if d.Kind == adopt.SpecGuard {
		guard = &v1alpha1.SpecGuard{}
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: d.Name}, guard)
	switch {
	case err == nil:
		return true, nil
	case actions.IsAbsent(err), meta.IsNoMatchError(err), apierrors.IsForbidden(err):
		return false, nil // a user without the right to see a guard cannot overwrite it: the guard is created, never updated
	default:
		return false, fmt.Errorf("looking for %s: %w", d, err)
	}
}

// draftFromCluster takes TYPE NAME and TYPE/NAME, where TYPE may be guard for
// whichever kind of that name there is.
func draftFromCluster(c *invocation.Cluster, cmd *cobra.Command, args []string) (adopt.Draft, error) {
	kind, name, found := strings.Cut(strings.Join(args, "/"), "/")
	if !found || name == "" || strings.Contains(name, "/") {
		return adopt.Draft{}, invocation.UsageErrorf(cmd, "name one guard, as guard NAME, specguard NAME or clusterspecguard NAME")
	}
	switch plain, _, _ := strings.Cut(strings.ToLower(kind), "."); plain {
	case "specguard", "specguards", "sg":
		return specGuardDraft(cmd.Context(), c, name)
	case "clusterspecguard", "clusterspecguards", "csg":
		return clusterSpecGuardDraft(cmd.Context(), c, name)
	case "guard":
	default:
		return adopt.Draft{}, invocation.UsageErrorf(cmd, "%q is no guard: want guard, specguard or clusterspecguard", kind)
	}
	draft, err := specGuardDraft(cmd.Context(), c, name)
	if !actions.IsAbsent(err) {
		return draft, err
	}
	draft, err = clusterSpecGuardDraft(cmd.Context(), c, name)
	if actions.IsAbsent(err) {
		return adopt.Draft{}, fmt.Errorf("there is neither a SpecGuard %s in namespace %s nor a ClusterSpecGuard %s", name, c.Namespace, name)
	}
	return draft, err
}

func specGuardDraft(ctx context.Context, c *invocation.Cluster, name string) (adopt.Draft, error) {
	guard := &v1alpha1.SpecGuard{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, guard); err != nil {
		return adopt.Draft{}, err
	}
	return adopt.Draft{
		Kind: adopt.SpecGuard, Namespace: c.Namespace, Name: name, Existing: true,
		Spec: v1alpha1.ClusterGuardSpec{GuardSpec: guard.Spec},
	}, nil
}

func clusterSpecGuardDraft(ctx context.Context, c *invocation.Cluster, name string) (adopt.Draft, error) {
	guard := &v1alpha1.ClusterSpecGuard{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, guard); err != nil {
		return adopt.Draft{}, err
	}
	return adopt.Draft{Kind: adopt.ClusterSpecGuard, Name: name, Existing: true, Spec: guard.Spec}, nil
}

func (a *app) draftFromFile(ctx context.Context, c *invocation.Cluster, file string) (adopt.Draft, error) {
	source, data, err := documents.ReadInput(file, a.In)
	if err != nil {
		return adopt.Draft{}, err
	}
	docs, err := documents.Parse(source, data)
	if err != nil {
		return adopt.Draft{}, err
	}
	if len(docs) != 1 {
		return adopt.Draft{}, fmt.Errorf("%s holds %d documents, want one guard", source, len(docs))
	}
	draft, err := parseGuard(docs[0].Body)
	if err != nil {
		return adopt.Draft{}, fmt.Errorf("%s: %w", source, err)
	}
	if draft.Kind == adopt.SpecGuard && draft.Namespace == "" {
		draft.Namespace = c.Namespace
	}
	draft.Existing, err = guardExists(ctx, c, draft)
	return draft, err
}

// parseGuard reads a guard strictly: with a misspelt field it would be a guard
// of something else.
func parseGuard(body []byte) (adopt.Draft, error) {
	var kind metav1.TypeMeta
	if err := json.UnmarshalCaseSensitivePreserveInts(body, &kind); err != nil {
		return adopt.Draft{}, err
	}
	if kind.APIVersion != v1alpha1.GroupVersion.String() {
		return adopt.Draft{}, fmt.Errorf("apiVersion is %q, want %s", kind.APIVersion, v1alpha1.GroupVersion)
	}
	var draft adopt.Draft
	var problems []error
	var err error
	switch adopt.GuardKind(kind.Kind) {
	case adopt.SpecGuard:
		guard := v1alpha1.SpecGuard{}
		problems, err = json.UnmarshalStrict(body, &guard)
		draft = adopt.Draft{Kind: adopt.SpecGuard, Namespace: guard.Namespace, Name: guard.Name, Spec: v1alpha1.ClusterGuardSpec{GuardSpec: guard.Spec}}
	case adopt.ClusterSpecGuard:
		guard := v1alpha1.ClusterSpecGuard{}
		problems, err = json.UnmarshalStrict(body, &guard)
		draft = adopt.Draft{Kind: adopt.ClusterSpecGuard, Name: guard.Name, Spec: guard.Spec}
	default:
		return adopt.Draft{}, fmt.Errorf("kind is %q, want SpecGuard or ClusterSpecGuard", kind.Kind)
	}
	if err = errors.Join(append(problems, err)...); err != nil {
		return adopt.Draft{}, err
	}
	if draft.Name == "" {
		return adopt.Draft{}, errors.New("the guard has no metadata.name")
	}
	return draft, nil
}

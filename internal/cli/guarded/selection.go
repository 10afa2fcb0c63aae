// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Selection is the part of a command line that picks Baselines.
type Selection struct {
	// Labels is the label selector; it selects objects with TYPE, and Baselines without.
	Labels string
	// AllNamespaces widens the selection to all namespaces.
	AllNamespaces bool
}

// AddFlags adds --selector and --all-namespaces.
func (s *Selection) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.Labels, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'. With TYPE it selects objects by their labels (objects that exist). Without TYPE it selects Baselines by theirs.")
	cmd.Flags().BoolVarP(&s.AllNamespaces, "all-namespaces", "A", false, "If present, across all namespaces. The namespace in the current context is ignored even if given with --namespace.")
}

// Selected is the result of a selection. Named tells that the command line named
// each object, so that each must be answered for.
type Selected struct {
	Baselines []v1alpha1.Baseline
	Named     bool
}

// Select finds the Baselines that arguments and flags pick. With an error it still returns
// those that were found by name.
func Select(ctx context.Context, c *invocation.Cluster, cmd *cobra.Command, args []string, s Selection) (Selected, error) {
	if CountNames(args) > 0 {
		targets, err := resolveNames(c, cmd, args, s)
		if err != nil {
			return Selected{}, err
		}
		found, err := getBaselines(ctx, c, targets)
		return Selected{Baselines: found, Named: true}, err
	}
	selector, err := labels.Parse(s.Labels)
	if err != nil {
		return Selected{}, invocation.UsageErrorf(cmd, "unable to parse selector %q: %v", s.Labels, err)
	}
	var types []string
	if len(args) > 0 {
		// Without an answer about categories, such as all, the types stand as they are.
		types = resource.SplitResourceArgument(cmp.Or(c.NewBuilder().ReplaceAliases(args[0]), args[0]))
	}
	namespace := c.Namespace
	if s.AllNamespaces {
		namespace = metav1.NamespaceAll
	}
	found, err := listBaselines(ctx, c, namespace, types, selector)
	return Selected{Baselines: found}, err
}

// getBaselines gives those that exist and an error for each of the others.
func getBaselines(ctx context.Context, c *invocation.Cluster, targets []Target) ([]v1alpha1.Baseline, error) {
	var found []v1alpha1.Baseline
	var missing []error
	for _, t := range targets {
		baseline, err := GetBaseline(ctx, c, t)
		if err != nil {
			missing = append(missing, err)
			continue
		}
		found = append(found, *baseline)
	}
	return found, errors.Join(missing...)
}

func listBaselines(ctx context.Context, c *invocation.Cluster, namespace string, types []string, selector labels.Selector) ([]v1alpha1.Baseline, error) {
	options := &client.ListOptions{Namespace: namespace}
	if len(types) == 0 {
		options.LabelSelector = selector
	}
	list := &v1alpha1.BaselineList{}
	if err := c.List(ctx, list, options); err != nil {
		return nil, err
	}
	if len(types) == 0 {
		return list.Items, nil
	}
	wanted, err := objectFilter(ctx, c, namespace, types, selector)
	if err != nil {
		return nil, err
	}
	var found []v1alpha1.Baseline
	for _, baseline := range list.Items {
		if wanted(&baseline) {
			found = append(found, baseline)
		}
	}
	return found, nil
}

// objectFilter tells whether a Baseline's object is of one of the types and, if
// there is a selector, carries its labels.
func objectFilter(ctx context.Context, c *invocation.Cluster, namespace string, types []string, selector labels.Selector) (func(*v1alpha1.Baseline) bool, error) {
	kinds := map[schema.GroupKind]bool{}
	matching := map[string]bool{}
	identity := func(kind schema.GroupKind, namespace, name string) string {
		return kind.String() + "/" + namespace + "/" + name
	}
	for _, name := range types {
		mapping, err := ResolveType(c, name)
		if err != nil {
			return nil, err
		}
		kind := mapping.GroupVersionKind
		kinds[kind.GroupKind()] = true
		if selector.Empty() {
			continue
		}
		objects := &metav1.PartialObjectMetadataList{}
		objects.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, objects, &client.ListOptions{Namespace: namespace, LabelSelector: selector}); err != nil {
			return nil, fmt.Errorf("selecting %s by label: %w", mapping.Resource.GroupResource(), err)
		}
		for _, object := range objects.Items {
			matching[identity(kind.GroupKind(), object.Namespace, object.Name)] = true
		}
	}
	return func(b *v1alpha1.Baseline) bool {
		kind := wording.KindOf(b).GroupKind()
		return kinds[kind] && (selector.Empty() || matching[identity(kind, b.Namespace, b.Spec.Target.Name)])
	}, nil
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// selection is the part of a command line that picks Baselines.
type selection struct {
	labels        string
	allNamespaces bool
}

func (s *selection) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.labels, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'. With TYPE it selects objects by their labels (objects that exist); without, Baselines by theirs.")
	cmd.Flags().BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "If present, across all namespaces. The namespace in the current context is ignored even if given with --namespace.")
}

// selected is what a selection found. Named tells that the command line named
// each object, so that each must be answered for.
type selected struct {
	baselines []v1alpha1.Baseline
	named     bool
}

func (c *cluster) selectBaselines(ctx context.Context, cmd *cobra.Command, args []string, s selection) (selected, error) {
	parsed, err := parseArguments(cmd, args)
	if err != nil {
		return selected{}, err
	}
	selector, err := labels.Parse(s.labels)
	if err != nil {
		return selected{}, usageErrorf(cmd, "unable to parse selector %q: %v", s.labels, err)
	}
	if len(parsed) > 0 && parsed[0].name != "" {
		switch {
		case s.allNamespaces:
			return selected{}, usageErrorf(cmd, "a resource cannot be retrieved by name across all namespaces")
		case s.labels != "":
			return selected{}, usageErrorf(cmd, "name cannot be provided when a selector is specified")
		}
		found, err := c.namedBaselines(ctx, parsed)
		return selected{baselines: found, named: true}, err
	}
	namespace := c.namespace
	if s.allNamespaces {
		namespace = metav1.NamespaceAll
	}
	found, err := c.listBaselines(ctx, namespace, parsed, selector)
	return selected{baselines: found}, err
}

// namedBaselines gives those that exist and an error for each of the others.
func (c *cluster) namedBaselines(ctx context.Context, args []argument) ([]v1alpha1.Baseline, error) {
	var found []v1alpha1.Baseline
	var missing []error
	for _, arg := range args {
		t, err := c.resolve(arg)
		if err != nil {
			return nil, err
		}
		baseline, err := c.baseline(ctx, t)
		if err != nil {
			missing = append(missing, err)
			continue
		}
		found = append(found, *baseline)
	}
	return found, errors.Join(missing...)
}

func (c *cluster) listBaselines(ctx context.Context, namespace string, types []argument, selector labels.Selector) ([]v1alpha1.Baseline, error) {
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
	wanted, err := c.objectFilter(ctx, namespace, types, selector)
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
func (c *cluster) objectFilter(ctx context.Context, namespace string, types []argument, selector labels.Selector) (func(*v1alpha1.Baseline) bool, error) {
	kinds := map[schema.GroupKind]bool{}
	matching := map[string]bool{}
	identity := func(kind schema.GroupKind, namespace, name string) string {
		return kind.String() + "/" + namespace + "/" + name
	}
	for _, arg := range types {
		mapping, err := c.resolveType(arg.kind)
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
		kind := targetKind(b).GroupKind()
		return kinds[kind] && (selector.Empty() || matching[identity(kind, b.Namespace, b.Spec.Target.Name)])
	}, nil
}

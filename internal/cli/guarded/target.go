// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// GetBaseline reads the Baseline of t, and explains the error about a missing one.
func GetBaseline(ctx context.Context, c *invocation.Cluster, t Target) (*v1alpha1.Baseline, error) {
	baseline := &v1alpha1.Baseline{}
	key := client.ObjectKey{Namespace: t.Namespace, Name: t.baselineName()}
	if err := c.Get(ctx, key, baseline); err != nil {
		return nil, t.explainMissingBaseline(err)
	}
	return baseline, nil
}

// Target is an object that the command line names. It need not exist: an object that is
// missing has a Baseline all the same.
type Target struct {
	Mapping         *meta.RESTMapping
	Namespace, Name string
}

// String is the object as kubectl names it: deployment.apps/web.
func (t Target) String() string {
	return actions.NameObject(t.Mapping.GroupVersionKind.GroupKind(), t.Name)
}

func (t Target) baselineName() string {
	return specguard.BaselineName(t.Mapping.Resource.Resource, t.Mapping.Resource.Group, t.Name)
}

// GVK returns the group, version and kind by which the body of t is hashed.
func (t Target) GVK() canon.GVK { return canon.GVK(t.Mapping.GroupVersionKind) }

// explainMissingBaseline explains the error "baselines … not found".
func (t Target) explainMissingBaseline(err error) error {
	if !actions.IsAbsent(err) {
		return err
	}
	return fmt.Errorf("%s in namespace %s has no Baseline: no guard selects it, or the assessor has not seen it yet", t, t.Namespace)
}

// CountNames returns the number of objects that arguments name, as TYPE/NAME or TYPE NAME. It is 0 for types alone.
func CountNames(args []string) int {
	if len(args) == 0 || slices.ContainsFunc(args, hasSlash) {
		return len(args)
	}
	return len(resource.SplitResourceArgument(args[0])) * (len(args) - 1)
}

func hasSlash(arg string) bool { return strings.Contains(arg, "/") }

// ResolveOne is for the commands that are about one object.
func ResolveOne(c *invocation.Cluster, cmd *cobra.Command, args []string) (Target, error) {
	if CountNames(args) != 1 {
		return Target{}, invocation.UsageErrorf(cmd, "name one object, as TYPE/NAME or TYPE NAME")
	}
	targets, err := resolveNames(c, cmd, args, Selection{})
	if err != nil {
		return Target{}, err
	}
	return targets[0], nil
}

// resolveNames returns the objects that arguments name, with the errors of kubectl. No object is read: the Baseline of a
// missing object exists.
func resolveNames(c *invocation.Cluster, cmd *cobra.Command, args []string, s Selection) ([]Target, error) {
	infos, err := c.NewBuilder().Unstructured().NamespaceParam(c.Namespace).DefaultNamespace().AllNamespaces(s.AllNamespaces).
		LabelSelectorParam(s.Labels).ResourceTypeOrNameArgs(true, args...).RequireObject(false).Do().Infos()
	if err != nil {
		return nil, wordArgumentError(cmd, err)
	}
	targets := make([]Target, 0, len(infos))
	for _, info := range infos {
		if problems := content.IsPathSegmentName(info.Name); len(problems) > 0 {
			return nil, invocation.UsageErrorf(cmd, "%q is not a name: it %s", info.Name, strings.Join(problems, ", "))
		}
		if err := checkNamespaced(info.Mapping); err != nil {
			return nil, err
		}
		targets = append(targets, Target{Mapping: info.Mapping, Namespace: c.Namespace, Name: info.Name})
	}
	return targets, nil
}

// wordArgumentError gives each error of a builder a line of its own, and puts the command into an example that has
// the command get of the program.
func wordArgumentError(cmd *cobra.Command, err error) error {
	all := []error{err}
	if several, is := errors.AsType[utilerrors.Aggregate](err); is {
		all = several.Errors()
	}
	example := filepath.Base(os.Args[0]) + " get "
	for i, one := range all {
		if strings.Contains(one.Error(), example) {
			all[i] = errors.New(strings.ReplaceAll(one.Error(), example, cmd.CommandPath()+" "))
		}
	}
	return errors.Join(all...)
}

// ResolveType reads TYPE as kubectl does: plural, singular or short name, or
// kind, each optionally with version and group.
func ResolveType(c *invocation.Cluster, name string) (*meta.RESTMapping, error) {
	mapping, err := lookUpType(c, name)
	if err != nil {
		return nil, err
	}
	return mapping, checkNamespaced(mapping)
}

func lookUpType(c *invocation.Cluster, name string) (*meta.RESTMapping, error) {
	return c.NewBuilder().Unstructured().SelectAllParam(true).ResourceTypes(name).Do().ResourceMapping()
}

func checkNamespaced(mapping *meta.RESTMapping) error {
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return fmt.Errorf("%s are not namespaced, and Plumbline guards namespaced objects only", mapping.Resource.GroupResource())
	}
	return nil
}

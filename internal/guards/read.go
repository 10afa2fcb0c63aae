// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Input is what a [Snapshot] is made of.
type Input struct {
	Guards        []v1alpha1.SpecGuard
	ClusterGuards []v1alpha1.ClusterSpecGuard
	Exceptions    []v1alpha1.SpecGuardException
	Namespaces    []metav1.PartialObjectMetadata
	// Excluded namespaces are never guarded.
	Excluded []string
	System   specguard.System
	// Registered are the resources of the installation; empty where they are not known.
	Registered []schema.GroupVersionResource
}

// Read compiles what the guards say now, as reader has it; who decides on a write
// hands in one that reads live. It fails when any of it cannot be read.
func Read(ctx context.Context, reader client.Reader, mapper meta.RESTMapper, excluded []string, system specguard.System, now time.Time) (*Snapshot, error) {
	in, err := ReadInput(ctx, reader, excluded, system)
	if err != nil {
		return nil, err
	}
	s, err := Build(in, mapper, now)
	if err != nil {
		return nil, err
	}
	s.Guards, s.ClusterGuards = in.Guards, in.ClusterGuards
	return s, nil
}

// ReadInput reads all guards and namespaces, as reader has them, each list in the order of
// names. It fails when a list cannot be read.
func ReadInput(ctx context.Context, reader client.Reader, excluded []string, system specguard.System) (Input, error) {
	in := Input{Excluded: excluded, System: system}
	var guards v1alpha1.SpecGuardList
	var clusterGuards v1alpha1.ClusterSpecGuardList
	var namespaces metav1.PartialObjectMetadataList
	namespaces.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NamespaceList"})
	var group errgroup.Group // beside each other: a reader may ask the API server
	group.Go(func() (err error) {
		in.Exceptions, err = ListExceptions(ctx, reader)
		return err
	})
	for what, list := range map[string]client.ObjectList{"guards": &guards, "cluster guards": &clusterGuards, "namespaces": &namespaces} {
		group.Go(func() error {
			if err := reader.List(ctx, list); err != nil {
				return fmt.Errorf("listing %s: %w", what, err)
			}
			return nil
		})
	}
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return Input{}, err
	}
	in.Guards, in.ClusterGuards, in.Namespaces = guards.Items, clusterGuards.Items, namespaces.Items
	// The cache lists in no order; equal snapshots must look equal.
	slices.SortFunc(in.Guards, func(a, b v1alpha1.SpecGuard) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(in.ClusterGuards, func(a, b v1alpha1.ClusterSpecGuard) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(in.Exceptions, func(a, b v1alpha1.SpecGuardException) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return in, nil
}

// namespacesByName lists the namespaces that exist.
func (in *Input) namespacesByName() map[string]Namespace {
	named := make(map[string]Namespace, len(in.Namespaces))
	for i := range in.Namespaces {
		n := &in.Namespaces[i]
		named[n.Name] = Namespace{Labels: n.Labels, Terminating: n.DeletionTimestamp != nil}
	}
	return named
}

// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// askHolder is how long it may take to find out whether a release is there.
const askHolder = 2 * time.Second

// numbers are the sequences of Services that no release divides now. They belong to
// the one goroutine that looks.
type numbers struct {
	// highest are those that this process has published: never less of any.
	highest map[types.NamespacedName]uint64
	// gone are uids of holders that are not there; they never come back.
	gone map[string]bool
	// entries as they were last when they could be read, in the ConfigMap of this version.
	entries map[string]release.Entry
	version string
	// unsure are Services of which it could not be asked whether their holder is there.
	unsure ir.Names
}

func newNumbers() numbers {
	return numbers{highest: map[types.NamespacedName]uint64{}, gone: map[string]bool{}, unsure: ir.Names{}}
}

// sequences are those that outlive releases.
func (s *sources) sequences(ctx context.Context, names ir.Names, in *ir.Inputs) {
	divided := make(map[types.NamespacedName]bool, len(in.Splits))
	for _, split := range in.Splits {
		service := types.NamespacedName{Namespace: split.Namespace, Name: split.Service}
		divided[service] = true
		s.numbers.highest[service] = max(s.numbers.highest[service], split.Sequence)
	}
	in.Sequences = map[types.NamespacedName]uint64{}
	for service := range names {
		delete(s.numbers.unsure, service)
		if divided[service] {
			continue
		}
		if e, is := s.numbers.entries[service.Namespace+"."+service.Name]; is {
			s.numbers.highest[service] = max(s.numbers.highest[service], s.sequenceOf(ctx, service, e))
		}
		if sequence, is := s.numbers.highest[service]; is {
			in.Sequences[service] = sequence
		}
	}
}

// readEntries adds the Services whose entries have changed. It keeps what it had when what is there
// cannot be read.
func (s *sources) readEntries(ctx context.Context, changed ir.Names) error {
	if s.namespace == "" {
		return nil
	}
	var stored corev1.ConfigMap
	err := s.cache.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: release.LedgerName}, &stored, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if stored.ResourceVersion != "" && stored.ResourceVersion == s.numbers.version {
		return nil
	}
	entries, err := release.ParseEntries(stored.Data)
	if err != nil {
		s.log.Error(err, "sequences that cannot be read are those of before; correct the entry, or take it out and restart the proxies of its Service", "configMap", release.LedgerName)
		for key, e := range entries {
			if e == (release.Entry{}) {
				entries[key] = s.numbers.entries[key]
			}
		}
	}
	believed, dropped := release.Follow(s.numbers.entries, entries)
	for _, service := range dropped {
		delete(s.numbers.highest, service) // it is part of what was dropped
	}
	for _, pair := range [][2]map[string]release.Entry{{believed, s.numbers.entries}, {s.numbers.entries, believed}} {
		for key, e := range pair[0] {
			if other, is := pair[1][key]; !is || other != e {
				changed[serviceOfEntry(key)] = true
			}
		}
	}
	s.numbers.entries, s.numbers.version = believed, stored.ResourceVersion
	return nil
}

func serviceOfEntry(key string) types.NamespacedName {
	namespace, name, _ := strings.Cut(key, ".")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// heldBy some releases are the Services whose sequences they held.
func (s *sources) heldBy(releases ir.Names) ir.Names {
	if len(releases) == 0 {
		return nil
	}
	held := ir.Names{}
	for key, e := range s.numbers.entries {
		service := serviceOfEntry(key)
		held[service] = releases[types.NamespacedName{Namespace: service.Namespace, Name: e.Release}]
	}
	maps.DeleteFunc(held, func(_ types.NamespacedName, is bool) bool { return !is })
	return held
}

// sequenceOf a Service that nothing divides. That its holder is gone and that it is
// not seen here yet look alike in a cache, so of one that is not there it is asked.
func (s *sources) sequenceOf(ctx context.Context, service types.NamespacedName, e release.Entry) uint64 {
	switch {
	case e.Holder == "":
		return e.Plain
	case s.numbers.gone[e.Holder]:
		return e.Ceiling
	case s.there(ctx, service, e):
		return e.Plain
	default:
		s.numbers.gone[e.Holder] = true
		return e.Ceiling
	}
}

// there is true also when nobody answers: what is said later is not said wrong.
func (s *sources) there(ctx context.Context, service types.NamespacedName, e release.Entry) bool {
	name := client.ObjectKey{Namespace: service.Namespace, Name: e.Release}
	var cached v1alpha1.ABRelease
	if s.has(releaseKind) && s.cache.Get(ctx, name, &cached) == nil && string(cached.UID) == e.Holder {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, askHolder)
	defer cancel()
	var live metav1.PartialObjectMetadata
	live.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(releaseKind))
	err := s.live.Get(ctx, name, &live)
	switch {
	case apierrors.IsNotFound(err):
		return false
	case err != nil:
		s.numbers.unsure[service] = true
		s.log.Info("asking whether a release is there", "release", name.String(), "error", err.Error())
		return true
	default:
		return string(live.UID) == e.Holder
	}
}

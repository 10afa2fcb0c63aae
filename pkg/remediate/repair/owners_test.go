// SPDX-License-Identifier: Apache-2.0

package repair_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
)

// The garbage collector and operators lose an object without its owners; an object with an
// owner that is gone is removed at once.
func TestAnObjectIsMadeAgainWithItsOwnersThatLive(t *testing.T) {
	owner := func(name, lost string, controller v1alpha1.Toggle) repair.Owner {
		return repair.Owner{ObservedOwner: v1alpha1.ObservedOwner{APIVersion: "shop.example/v1", Kind: "Basket", Name: name, UID: "uid-" + name, Controller: controller}, Lost: lost}
	}
	reference := func(name string, controller *bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "shop.example/v1", Kind: "Basket", Name: name, UID: types.UID("uid-" + name), Controller: controller}
	}
	tests := map[string]struct {
		owners []repair.Owner
		want   []metav1.OwnerReference
		lacks  string
	}{
		"none": {lacks: "made again " + repair.NotRestored},
		"one that lives": {
			[]repair.Owner{owner("a", "", v1alpha1.Enabled)}, []metav1.OwnerReference{reference("a", new(true))}, "made again " + repair.NotRestored,
		},
		"one that is none any more": {
			[]repair.Owner{owner("a", "it is gone", v1alpha1.Enabled)}, nil, "made again without its owner Basket/a (it is gone), " + repair.NotRestored,
		},
		"several": {
			[]repair.Owner{owner("a", "it is gone", ""), owner("b", "", ""), owner("c", "another object has its name", v1alpha1.Disabled), owner("d", "", v1alpha1.Disabled)},
			[]metav1.OwnerReference{reference("b", nil), reference("d", nil)},
			"made again without its owners Basket/a (it is gone), Basket/c (another object has its name), " + repair.NotRestored,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := standard(t)
			s.Owners = test.owners
			out, err := repair.Creation("shop", target(t, v1alpha1.ActionReconcile), s, marks, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			var made metav1.PartialObjectMetadata
			if err := json.Unmarshal(out, &made); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, made.OwnerReferences); diff != "" {
				t.Errorf("its owners (-want +got):\n%s", diff)
			}
			if got := repair.Lacks(s); got != test.lacks {
				t.Errorf("it lacks %q", got)
			}
		})
	}
}

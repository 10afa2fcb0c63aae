// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

func TestTheOwnersOfAnObject(t *testing.T) {
	owner := func(controller *bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "u", Controller: controller}}
	}
	for name, test := range map[string]struct {
		references string
		want       []metav1.OwnerReference
	}{
		"none":                   {`[]`, nil},
		"one that controls":      {`[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"u","controller":true}]`, owner(new(true))},
		"one that does not":      {`[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"u","controller":false}]`, owner(new(false))},
		"one that does not say":  {`[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"u"}]`, owner(nil)},
		"one whose word is none": {`[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"u","controller":"true"}]`, owner(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			pod, err := parseObject([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","ownerReferences":`+test.references+`}}`), canon.GVK{Version: "v1", Kind: "Pod"})
			if err != nil {
				t.Fatal(err)
			}
			defer pod.release()
			if diff := cmp.Diff(test.want, pod.owners()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestACountIsWrittenInDecimalDigits(t *testing.T) {
	for n, want := range map[int32]string{0: "0", 9: "9", 10: "10", 1<<31 - 1: "2147483647"} {
		if got := string(decimal(n)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/servertime"
)

// A store that answers reads and takes no writes has no leader, so that is no end of a vigil.
func TestALeaseThatNoReplicaRenewsIsNoAnswer(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	lease := func(ago time.Duration) runtime.Object {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: "plumbline-xds"}, Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Add(-ago)}}}
	}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		want    func(error) bool
	}{
		"one that a replica renews":  {[]runtime.Object{lease(29 * time.Second)}, func(err error) bool { return err == nil }},
		"one that no replica renews": {[]runtime.Object{lease(31 * time.Second)}, func(err error) bool { return errors.Is(err, errUnled) }},
		"none":                       {nil, apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			l := &leader{
				part:   elected.Part{Namespace: "plumbline-system", Lease: "plumbline-xds", Time: servertime.New(clocktesting.NewFakeClock(now))},
				leases: fake.NewClientset(tc.objects...).CoordinationV1(),
			}
			if err := l.askLease(t.Context()); !tc.want(err) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

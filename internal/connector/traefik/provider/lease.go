// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// freshLease is how long ago the lease was renewed at most while its holder answers Traefiks. Another replica takes the
// lease after 15 s, and a Traefik waits 5 s for an answer: so an answer that is given in time comes from the only leader.
const freshLease = 10 * time.Second

var errFollows = errors.New("this replica does not lead; keep the configuration of before")

// CheckLease returns the reason why a replica that has begun to lead may not hold the lease any more. The identity is the
// one by which it holds the lease.
func CheckLease(lease *coordinationv1.Lease, identity string, now time.Time) error {
	switch {
	case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != identity || identity == "":
		return errFollows
	case lease.Spec.RenewTime == nil || now.Sub(lease.Spec.RenewTime.Time) > freshLease:
		return fmt.Errorf("the lease was not renewed for %s; keep the configuration of before", freshLease)
	}
	return nil
}

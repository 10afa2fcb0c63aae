// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// sentinels connect a client to the primary that Sentinels name
// (https://redis.io/docs/latest/develop/reference/sentinel-clients/). Each connection
// begins with a question. A failover ends the connections to the old primary, and the
// library closes a connection whose server has become a replica.
type sentinels struct {
	addresses    []string
	master       string
	passwordFile string
	dial         dialFunc
	budget       time.Duration
}

// dialPrimary asks one Sentinel after the other within the budget. A failure came before
// a command left, and says so, for neverSent.
func (s *sentinels) dialPrimary(ctx context.Context, network, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.budget)
	defer cancel()
	var failures []error
	for _, address := range s.addresses {
		primary, err := s.ask(ctx, address)
		if err == nil {
			return s.dial(ctx, network, primary)
		}
		failures = append(failures, err)
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("asking Sentinels for %q: %w", s.master, errors.Join(failures...))}
}

// ask has a share of the budget, so that a Sentinel that hangs leaves time for the next.
func (s *sentinels) ask(ctx context.Context, address string) (string, error) {
	share := s.budget / time.Duration(len(s.addresses)+1)
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	password, err := readPassword(s.passwordFile)
	if err != nil {
		return "", fmt.Errorf("reading the password of Sentinels: %w", err)
	}
	client := redis.NewSentinelClient(&redis.Options{
		Addr: address, Password: password, Dialer: bounded(s.dial), DialTimeout: share, ReadTimeout: share, WriteTimeout: share,
		MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, DisableIdentity: true, Protocol: 2,
	})
	defer func() { _ = client.Close() }() // it was asked once
	found, err := client.GetMasterAddrByName(ctx, s.master).Result()
	if err != nil {
		return "", fmt.Errorf("Sentinel %s: %w", address, err) //nolint:staticcheck // a name
	}
	if len(found) != 2 {
		return "", fmt.Errorf("the address of the primary has %d parts, want 2", len(found))
	}
	return net.JoinHostPort(found[0], found[1]), nil
}

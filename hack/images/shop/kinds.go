// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
)

// visitors order in three ways, which are counted apart.
type visitors struct {
	orders *visitor
	// calls and sockets are nil if no order is sent that way.
	calls, sockets *visitor
	// close what is open, after the last order.
	close []func()
}

// told is what became of the orders of all visitors until now.
type told struct {
	visits
	Calls   *visits `json:"calls,omitempty"`
	Sockets *visits `json:"sockets,omitempty"`
}

func newVisitors(c visitConfig) (*visitors, error) {
	byPost, err := newOrders(c)
	if err != nil {
		return nil, err
	}
	v := &visitors{orders: newVisitor(c.Rate, c.Users, byPost.send)}
	if c.CallRate > 0 {
		byCall, err := newCalls(c)
		if err != nil {
			return nil, err
		}
		v.calls, v.close = newVisitor(c.CallRate, 0, byCall.send), append(v.close, byCall.close)
	}
	if c.SocketRate > 0 {
		bySocket, err := newSockets(c)
		if err != nil {
			return nil, err
		}
		v.sockets, v.close = newVisitor(c.SocketRate, 0, bySocket.send), append(v.close, bySocket.close)
	}
	return v, nil
}

// run orders until ctx is done, and then waits for the answers.
func (v *visitors) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, one := range []*visitor{v.orders, v.calls, v.sockets} {
		if one != nil {
			all.Go(func() { one.run(ctx) })
		}
	}
	all.Wait()
	for _, end := range v.close {
		end()
	}
}

func (v *visitors) report() told {
	of := func(one *visitor) *visits {
		if one == nil {
			return nil
		}
		seen := one.report()
		return &seen
	}
	return told{v.orders.report(), of(v.calls), of(v.sockets)}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The method of gRPC that takes an order. Request and response are strings: what is ordered, and the
// version that answers.
const (
	callService = "plumbline.shop.Orders"
	callMethod  = "Place"
	callPath    = "/" + callService + "/" + callMethod
)

// serveCalls answers orders by gRPC. A call fails if spoil says so.
func serveCalls(version string, spoil func(context.Context) error) http.Handler {
	place := func(_ any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		if err := read(&wrapperspb.StringValue{}); err != nil {
			return nil, err
		}
		if err := spoil(ctx); err != nil {
			return nil, err
		}
		return wrapperspb.String(version), nil
	}
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: callService, Methods: []grpc.MethodDesc{{MethodName: callMethod, Handler: place}},
	}, nil)
	return server
}

// calls are orders by gRPC over one connection. The library sends a call again only if the other end of
// the connection has not taken it, as net/http does.
type calls struct{ conn *grpc.ClientConn }

func newCalls(c visitConfig) (*calls, error) {
	address, host, err := c.target()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority(host), grpc.WithDisableRetry())
	if err != nil {
		return nil, fmt.Errorf("making the client of gRPC: %w", err)
	}
	return &calls{conn}, nil
}

// send orders, and returns the version that answers.
func (c *calls) send(ctx context.Context, _ int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, visitTimeout)
	defer cancel()
	var version wrapperspb.StringValue
	if err := c.conn.Invoke(ctx, callPath, wrapperspb.String("a thing"), &version); status.Convert(err).Message() == spoiledText {
		return "", errSpoiled
	} else if err != nil {
		return "", err
	}
	return version.Value, nil
}

func (c *calls) close() { _ = c.conn.Close() } // all calls have ended

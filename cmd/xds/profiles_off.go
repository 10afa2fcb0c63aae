// SPDX-License-Identifier: Apache-2.0

//go:build !failpoints

package main

// profile writes nothing: only a build with the tag failpoints does.
func profile(func(string) string) (stop func()) { return func() {} }

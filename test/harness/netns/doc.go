// SPDX-License-Identifier: Apache-2.0

// Package netns makes networks of their own for tests ([New]), connects two of them as a plugin
// of the network connects pods ([Namespace.Join]), and has one swallow the packets of the other
// ([Namespace.Lose]). It needs root.
package netns

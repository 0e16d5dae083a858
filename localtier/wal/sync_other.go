//go:build !linux && !darwin

package wal

import "os"

func syncData(f *os.File, _ bool) error { return f.Sync() }

func syncFile(f *os.File, _ bool) error { return f.Sync() }

func startWrite(*os.File, int64, int64) {}

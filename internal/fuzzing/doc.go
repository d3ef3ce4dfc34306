// Package fuzzing lets the fuzz targets of the module run millions of times in
// their own process. Only tests import it.
//
// Go's engine searches with the help of coverage, through another process and
// some thousand times a second. What it has found is a good start for plain
// mutation, which is ten to a hundred times as fast: with FUZZ_EXECUTIONS set, a
// target of [Fuzz] is called that often with mutations of its seeds, of
// testdata/fuzz and of what the engine left in the folder FUZZ_CORPUS. FUZZ_SEED
// chooses other mutations; the same seed and corpus give the same ones. The
// first input that fails is kept in testdata/fuzz, in the engine's format, and
// so fails the tests from then on. scripts/fuzz does both, one after the other.
package fuzzing

package netnstest_test

const programEnv = "STRICTARP_TEST_PROGRAM"

func program() int { return 0 }

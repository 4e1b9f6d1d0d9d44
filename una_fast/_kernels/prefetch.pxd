"""Asks the processor to load a cache line before it is read. Does nothing if the compiler has no prefetch."""

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define una_prefetch(address) __builtin_prefetch(address)
    #else
    #define una_prefetch(address) ((void)(address))
    #endif
    """
    void una_prefetch(const void *address) noexcept nogil

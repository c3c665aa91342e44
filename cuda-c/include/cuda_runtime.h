// Empty: programs include this header for the language, which is already available.
#pragma once
